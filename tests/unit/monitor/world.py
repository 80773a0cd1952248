"""A small world around the monitor: a log it folds, heartbeats it hears, a clock."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from typing_extensions import override

from trainmaster.core.decision import Decision
from trainmaster.core.envelope import Entry
from trainmaster.core.events import AttemptEnded, Event
from trainmaster.core.facts import Capacity
from trainmaster.core.ids import JobId, JobKey, Key, NodeKey
from trainmaster.core.messages import NodeHeartbeat, Progress
from trainmaster.core.moment import Interval, Moment
from trainmaster.core.record import Job
from trainmaster.core.values import Cause, RankExit
from trainmaster.monitor.hearing import Hearing
from trainmaster.monitor.observed import HEARD, PROGRESS
from trainmaster.monitor.policy import Monitor
from trainmaster.monitor.state import State
from trainmaster.testkit.builders import START, an_entry, said

KEY = JobKey("default", JobId("job-1"))
EIGHT = Capacity(accelerators=8, cpus=64)


def node_key(name: str, pool: str = "local") -> NodeKey:
    return NodeKey(pool, name)


def a_beat(**changes: Any) -> NodeHeartbeat:
    plain = NodeHeartbeat(
        capacity=EIGHT,
        facts={"host": "alpha"},
        boot_id="boot-1",
        address="10.0.0.1",
        interval_seconds=1.0,
    )
    return plain.model_copy(update=changes)


@dataclass(slots=True)
class World:
    """Time runs in seconds since START; every stored event takes the current time."""

    state: State = field(default_factory=State)
    policy: Monitor = field(default_factory=Monitor)
    hearing: Hearing = field(default_factory=Hearing)
    facts: dict[str, Any] = field(default_factory=dict[str, Any])
    blind: tuple[Interval, ...] = ()
    seconds: float = 0.0
    log: list[Entry] = field(default_factory=list[Entry])

    @override
    def __repr__(self) -> str:
        lines = [f"{entry.key[-1]}: {entry.event!r}" for entry in self.log]
        return "World:\n" + "\n".join(lines)

    @property
    def now(self) -> datetime:
        return START + timedelta(seconds=self.seconds)

    def say(self, key: Key, event: Event) -> None:
        entry = an_entry(event, key=key, seq=len(self.log) + 1)
        self.log.append(entry)
        timed = Entry(
            stream=entry.stream,
            seq=entry.seq,
            time=self.now,
            id=entry.id,
            family=entry.family,
            key=key,
            event=event,
        )
        tuple(self.policy.fold(self.state, timed))

    def tell(self, words: str, key: JobKey = KEY) -> None:
        """Let a job live: `submitted placed ordered started`."""
        for word in words.split():
            job = self.state.jobs.get(key) or Job(key=key)
            self.say(key, said(job, word, spec=job.spec))

    def end(self, cause: Cause, **changes: Any) -> None:
        """End the current attempt."""
        job = self.state.jobs[KEY]
        ended = AttemptEnded(attempt=job.attempt, cause=cause, reason="because")
        self.say(KEY, ended.model_copy(update=changes))

    # --------------------------------------------------------------------- listening

    def listen(self) -> None:
        self.hearing.listen(self.seconds)

    def beat(self, *names: str, pool: str = "local", **changes: Any) -> None:
        for name in names:
            key = node_key(name, pool)
            self.hearing.beat(key, a_beat(**changes), self.seconds)

    def look(self) -> None:
        """State what was heard, as telemetry does twice a second."""
        if not self.hearing.deaf:
            self.facts[HEARD] = self.hearing.view(self.now, self.seconds)

    def decide(self) -> Decision:
        return self.policy.decide(
            self.state, self.facts, Moment(at=self.now, blind=self.blind)
        )

    def turn(self) -> list[tuple[Key, Event]]:
        """Look, decide and store what was decided; gives it back."""
        self.look()
        said_now: list[tuple[Key, Event]] = []
        decision = self.decide()
        for answer in decision.answers:
            self.facts.pop(answer.fact, None)
        for group in decision.groups:
            for write in group:
                self.say(write.key, write.event)
                said_now.append((write.key, write.event))
        return said_now

    def live(self, seconds: float, *names: str, pool: str = "local") -> list[str]:
        """Let time pass with these nodes beating; gives `node kind` of all facts."""
        happened: list[str] = []
        until = self.seconds + seconds
        while self.seconds < until:
            self.seconds += 0.5
            if self.seconds % 1.0 == 0:
                self.beat(*names, pool=pool)
            happened += [f"{key[-1]} {event.kind}" for key, event in self.turn()]
        return happened

    def progress(self, attempt: int, step: int, loss: float | None = None) -> None:
        known: Mapping[JobKey, Progress] = self.facts.get(PROGRESS, {})
        seen = Progress(attempt=attempt, step=step, loss=loss)
        self.facts[PROGRESS] = {**known, KEY: seen}


def an_exit(**changes: Any) -> RankExit:
    plain = RankExit(rank=1, node="n2", code=1, last_lines=("Traceback", "Boom"))
    return plain.model_copy(update=changes)
