"""What is known of one job: its state and all that the log told about it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from enum import StrEnum
from operator import attrgetter
from typing import Any, Final

from trainmaster.core.events import CheckpointChosen, StartOrdered
from trainmaster.core.ids import JobKey
from trainmaster.core.spec import JobSpec
from trainmaster.core.values import Cause, MemberSlot, RankExit, RestorePoint

NEVER: Final = datetime.min.replace(tzinfo=UTC)


class JobState(StrEnum):
    """Where a job is. Each comment says who moves it next."""

    NEW = "new"  # nobody: it exists only between two lines of code
    QUEUED = "queued"  # scheduler places it; user holds or cancels it
    HELD = "held"  # user releases or cancels it
    PLACED = "placed"  # launcher orders the start; past the deadline the reaper
    STARTING = "starting"  # launcher, when all ranks run; past the deadline the reaper
    RUNNING = "running"  # the training itself, reported by the launcher
    STOPPING = "stopping"  # launcher, when all ranks are gone; past it the reaper
    SETTLING = "settling"  # reaper and checkpoint-manager; past the deadline the reaper
    SUCCEEDED = "succeeded"  # final; the reaper archives it
    FAILED = "failed"  # final; the reaper archives it
    CANCELLED = "cancelled"  # final; the reaper archives it


LIVE: Final = frozenset(
    {JobState.PLACED, JobState.STARTING, JobState.RUNNING, JobState.STOPPING}
)
"""States in which an attempt may have processes."""
FINAL: Final = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How the current attempt ended."""

    cause: Cause
    reason: str
    at: datetime
    node: str = ""
    first: RankExit | None = None
    exits: tuple[RankExit, ...] = ()
    lost: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """A stop that was ordered."""

    cause: Cause
    reason: str
    at: datetime
    grace_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """What a user asked for, by whom, when."""

    by: str
    reason: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job, as the log tells it. Times are the server's."""

    key: JobKey
    state: JobState = JobState.NEW
    since: datetime = NEVER
    submitted_at: datetime = NEVER
    spec: JobSpec = field(default_factory=JobSpec)
    spec_digest: str = ""
    submission_key: str = ""
    by: str = ""
    priority: int = 0
    attempt: int = 0
    pool: str = ""
    members: tuple[MemberSlot, ...] = ()
    placed_at: datetime | None = None
    start: StartOrdered | None = None
    started_at: datetime | None = None
    stop: Stop | None = None
    ended: Ending | None = None
    cancel: Intent | None = None
    hold: bool = False
    chosen: CheckpointChosen | None = None
    restore: RestorePoint | None = None
    unreclaimed: Mapping[int, tuple[MemberSlot, ...]] = field(
        default_factory=dict[int, tuple[MemberSlot, ...]]
    )
    retries_used: int = 0
    attempts_without_progress: int = 0
    step: int = 0
    not_before: datetime | None = None
    avoid: tuple[str, ...] = ()
    verdict: str = ""
    archived: bool = False

    def changed(self, change: Mapping[str, Any]) -> "Job":
        """Copy the job with some fields changed: `dataclasses.replace`, but quick.

        Every event of every reader comes through here; replace() takes six times as
        long, because a frozen class sets each field through two functions.
        """
        job = object.__new__(Job)
        for write, value in zip(_WRITERS.values(), _values(self), strict=True):
            write(job, value)
        for name, value in change.items():
            _WRITERS[name](job, value)
        return job

    @property
    def id(self) -> str:
        """The job's id alone."""
        return self.key.job

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes of the current attempt, in rank order."""
        return tuple(member.node for member in self.members)

    @property
    def clean(self) -> bool:
        """Every rank of the ended attempt was seen to exit 0, unstopped by us."""
        if self.ended is None or not all(exit_.clean for exit_ in self.ended.exits):
            return False
        seen = {exit_.rank for exit_ in self.ended.exits}
        return len(seen) >= sum(member.ranks for member in self.members) > 0

    @property
    def verdict_given(self) -> bool:
        """The job has come to its final state."""
        return self.state in FINAL

    def owes_proof(self) -> tuple[str, ...]:
        """Nodes that have not shown that the current attempt left nothing."""
        return tuple(m.node for m in self.unreclaimed.get(self.attempt, ()))


_WRITERS: Final = {each.name: getattr(Job, each.name).__set__ for each in fields(Job)}
_values: Final = attrgetter(*_WRITERS)
