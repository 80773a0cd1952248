"""Reads a log the way every service must, and keeps each step for judging."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from trainmaster.core.envelope import Entry
from trainmaster.core.events import Event, Transition
from trainmaster.core.facts import (
    Capacity,
    MemberClosed,
    MemberStarted,
    NodeRegistered,
    RankExited,
)
from trainmaster.core.ids import JobId, JobKey, MemberKey, NodeKey
from trainmaster.core.job import Void, evolve
from trainmaster.core.record import Job
from trainmaster.core.values import RankExit

Evolve = Callable[[Job, Transition, datetime], Job | Void]
Part = tuple[JobId, int]
"""An attempt of a job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One transition on the log, and the job before and after it."""

    entry: Entry
    key: JobKey
    event: Transition
    before: Job
    after: Job
    void: str = ""

    @property
    def counts(self) -> bool:
        """The event followed; else it is void and changed nothing."""
        return not self.void

    @property
    def where(self) -> str:
        """Name the job and the entry for people."""
        kind = self.entry.event.kind
        return f"job {self.key.job}, {self.entry.stream} {self.entry.seq} {kind}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reports:
    """What agents said on MEMBERS about one attempt of a job."""

    exits: dict[int, RankExit] = field(default_factory=dict[int, RankExit])
    closed: dict[str, tuple[Entry, MemberClosed]] = field(
        default_factory=dict[str, tuple[Entry, MemberClosed]]
    )
    exited_after_close: set[int] = field(default_factory=set[int])
    started: list[Entry] = field(default_factory=list[Entry])


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """A whole log, read once."""

    steps: tuple[Step, ...]
    jobs: dict[JobKey, Job]
    reports: dict[Part, Reports]
    capacity: dict[NodeKey, Capacity]

    def lives(self) -> Iterator[list[Step]]:
        """Yield the steps of every job, in the order of the log."""
        lives: dict[JobKey, list[Step]] = {key: [] for key in self.jobs}
        for step in self.steps:
            lives[step.key].append(step)
        return iter(lives.values())


def replay(entries: Sequence[Entry], evolve: Evolve = evolve) -> Replay:
    """Fold a log from nothing. Archived jobs are kept, to see what comes after."""
    jobs: dict[JobKey, Job] = {}
    steps = tuple(_steps(entries, jobs, evolve))
    reports: dict[Part, Reports] = defaultdict(Reports)
    capacity: dict[NodeKey, Capacity] = {}
    for entry in entries:
        match entry.key, entry.event:
            case MemberKey() as key, event:
                _report(reports[key.job, key.attempt], key.node, entry, event)
            case NodeKey() as key, NodeRegistered(capacity=offered):
                capacity[key] = _larger(capacity.get(key), offered)
            case _:
                pass
    return Replay(steps=steps, jobs=jobs, reports=dict(reports), capacity=capacity)


def _steps(
    entries: Iterable[Entry], jobs: dict[JobKey, Job], evolve: Evolve
) -> Iterator[Step]:
    for entry in entries:
        key, event = entry.key, entry.event
        if not (isinstance(key, JobKey) and isinstance(event, Transition)):
            continue
        before = jobs.get(key) or Job(key=key)
        outcome = evolve(before, event, entry.time)
        void = outcome.reason if isinstance(outcome, Void) else ""
        after = before if isinstance(outcome, Void) else outcome
        jobs[key] = after
        yield Step(
            entry=entry, key=key, event=event, before=before, after=after, void=void
        )


def _report(reports: Reports, node: str, entry: Entry, event: Event) -> None:
    match event:
        case RankExited(exit=exit_):
            # torchrun may restart a rank inside an attempt: its last exit holds.
            reports.exits[exit_.rank] = exit_
            if node in reports.closed:
                reports.exited_after_close.add(exit_.rank)
        case MemberClosed():
            reports.closed.setdefault(node, (entry, event))
        case MemberStarted(failure=None):
            reports.started.append(entry)
        case _:
            pass


def _larger(known: Capacity | None, offered: Capacity) -> Capacity:
    """Keep the most a node ever had: more cannot have been given away."""
    if known is None or known.accelerators < offered.accelerators:
        return offered
    return known
