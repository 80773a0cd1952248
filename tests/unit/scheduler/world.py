"""A small world around the scheduler: a log that it folds and decides on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from typing_extensions import override

from trainmaster.core.decision import Decision
from trainmaster.core.envelope import Entry
from trainmaster.core.events import (
    AttemptEnded,
    AttemptPlaced,
    Event,
    Submitted,
    Transition,
)
from trainmaster.core.facts import Capacity, NodeRegistered
from trainmaster.core.ids import JobId, JobKey, Key, NodeKey
from trainmaster.core.messages import WaitReasons
from trainmaster.core.moment import Moment
from trainmaster.core.record import Job
from trainmaster.core.spec import JobSpec
from trainmaster.core.values import Cause
from trainmaster.scheduler.plan import plan
from trainmaster.scheduler.policy import Scheduler
from trainmaster.scheduler.result import Plan
from trainmaster.scheduler.state import State
from trainmaster.testkit.builders import START, an_entry, said

POOL = "local"
GIB = 2**30


def job_key(name: str, team: str = "default") -> JobKey:
    return JobKey(team, JobId(name))


def a_spec(**changes: Any) -> JobSpec:
    """One node with one accelerator, unless told otherwise."""
    plain = JobSpec(command=("train",), nodes=1, accelerators_per_node=1)
    return plain.model_copy(update=changes)


@dataclass(slots=True)
class World:
    """Says events, folds them, lets the scheduler decide."""

    state: State = field(default_factory=State, repr=False)
    policy: Scheduler = field(default_factory=Scheduler, repr=False)
    log: list[Entry] = field(default_factory=list[Entry])
    later: timedelta = timedelta()

    @override
    def __repr__(self) -> str:
        lines = [f"{entry.key[-1]}: {entry.event!r}"[:200] for entry in self.log]
        return "World:\n" + "\n".join(lines)

    def say(self, key: Key, event: Event) -> Entry:
        entry = an_entry(event, key=key, seq=len(self.log) + 1)
        entry = entry._replace(time=entry.time + self.later)
        self.log.append(entry)
        tuple(self.policy.fold(self.state, entry))
        return entry

    def node(
        self,
        name: str,
        accelerators: int = 8,
        *,
        pool: str = POOL,
        facts: Mapping[str, str] | None = None,
        **amounts: int,
    ) -> None:
        plain = {"cpus": 64, "memory_bytes": 512 * GIB}
        capacity = Capacity(accelerators=accelerators, **{**plain, **amounts})
        self.say(
            NodeKey(pool, name),
            NodeRegistered(capacity=capacity, facts=dict(facts or {})),
        )

    def submit(
        self, name: str, *, team: str = "default", by: str = "", **spec: Any
    ) -> JobKey:
        key = job_key(name, team)
        self.say(key, Submitted(spec=a_spec(**spec), by=by))
        return key

    def job(self, name: str, team: str = "default") -> Job:
        return self.state.jobs[job_key(name, team)]

    def tell(self, name: str, words: str, *, team: str = "default") -> None:
        """Let a job live on: `ended reclaimed requeued`."""
        for word in words.split():
            job = self.job(name, team)
            event: Transition = said(job, word, spec=job.spec)
            self.say(job.key, event)

    def settle_quietly(self) -> None:
        """Place all that can be placed, as long as nobody is stopped for it."""
        while (made := self.plan()).placements and not made.preemptions:
            self.cycle()

    def say_ended_by_stop(self, key: JobKey) -> None:
        """Let a stopped attempt end for the cause it was stopped for."""
        job = self.state.jobs[key]
        cause = job.stop.cause if job.stop else Cause.UNSPECIFIED
        self.say(key, AttemptEnded(attempt=job.attempt, cause=cause))

    @property
    def now(self) -> datetime:
        return START + timedelta(seconds=len(self.log)) + self.later

    def at(self, moment: datetime) -> None:
        """Let time pass until a later moment."""
        self.later += moment - self.now

    def plan(self, pool: str = POOL, at: datetime | None = None) -> Plan:
        return plan(self.state.snapshot(pool, at or self.now))

    def decide(self, at: datetime | None = None) -> Decision:
        return self.policy.decide(self.state, {}, Moment(at=at or self.now))

    def cycle(self, at: datetime | None = None) -> Mapping[str, AttemptPlaced]:
        """Decide and store all that was decided; gives what was placed, by job."""
        placed: dict[str, AttemptPlaced] = {}
        for group in self.decide(at).groups:
            for write in group:
                self.say(write.key, write.event)
                if isinstance(write.event, AttemptPlaced):
                    placed[str(write.key[-1])] = write.event
        return placed

    def settle(self) -> Mapping[str, AttemptPlaced]:
        """Decide until there is nothing left to decide."""
        placed: dict[str, AttemptPlaced] = {}
        while new := self.cycle():
            placed.update(new)
        return placed


def nodes_of(placed: Mapping[str, AttemptPlaced]) -> dict[str, tuple[str, ...]]:
    return {job: tuple(m.node for m in p.members) for job, p in placed.items()}


def codes(reasons: WaitReasons) -> list[str]:
    return [reason.code for reason in reasons.reasons]


def why(world: World, name: str) -> dict[str, str]:
    """The reasons the newest plan gives a job, sentence by code."""
    waiting = world.plan().waiting().get(job_key(name), WaitReasons())
    return {reason.code: reason.message for reason in waiting.reasons}
