"""What the console keeps of one job, and of the order of a job's events.

Pure. A job here outlives its archiving, and its ended attempts are kept in brief.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from trainmaster.core.events import (
    AttemptEnded,
    AttemptLost,
    AttemptPlaced,
    AttemptStarted,
    Cancelled,
    Event,
    Failed,
    Succeeded,
)
from trainmaster.core.notes import CheckpointVerified
from trainmaster.core.record import FINAL, LIVE, Job
from trainmaster.core.values import Cause, MemberSlot, RankExit, RestorePoint

_TELLS_OF_ATTEMPT: Final = (AttemptPlaced, AttemptStarted, AttemptEnded, AttemptLost)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptView:
    """One attempt in brief."""

    attempt: int
    members: tuple[MemberSlot, ...] = ()
    placed_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    cause: Cause = Cause.UNSPECIFIED
    reason: str = ""
    lost: bool = False
    first: RankExit | None = None
    restore: RestorePoint | None = None

    @property
    def nodes(self) -> tuple[str, ...]:
        """Its nodes, in rank order."""
        return tuple(member.node for member in self.members)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """One job, its attempts, the highest step the log tells of, and why it ended.

    `saved_…` is the newest checkpoint that it saved and that is proven whole.
    """

    job: Job
    attempts: tuple[AttemptView, ...] = ()
    step: int = 0
    cause: Cause = Cause.UNSPECIFIED
    saved_step: int = 0
    saved_path: str = ""

    @property
    def final(self) -> bool:
        """Whether the job is over."""
        return self.job.state in FINAL or self.job.archived


def moved(before: JobView | None, job: Job, event: Event) -> JobView:
    """Take over what a transition made of the job."""
    view = JobView(job=job) if before is None else replace(before, job=job)
    if isinstance(event, _TELLS_OF_ATTEMPT):
        brief = _brief(job)
        earlier = tuple(a for a in view.attempts if a.attempt != brief.attempt)
        view = replace(view, attempts=(*earlier, brief), cause=brief.cause)
    elif isinstance(event, Failed | Cancelled):
        view = replace(view, cause=event.cause or view.cause)
    elif isinstance(event, Succeeded):
        view = replace(view, cause=Cause.COMPLETED)
    return stepped(view, getattr(event, "step", 0))


def stepped(view: JobView, step: int) -> JobView:
    """Remember a step that the log tells of; a lower one changes nothing."""
    return replace(view, step=step) if step > view.step else view


def saved(view: JobView, note: CheckpointVerified) -> JobView:
    """Remember a checkpoint; one that was there before the job is not its own."""
    view = stepped(view, note.step)
    if not note.attempt or note.step < view.saved_step:
        return view
    return replace(view, saved_step=note.step, saved_path=note.path)


def _brief(job: Job) -> AttemptView:
    ended = job.ended
    return AttemptView(
        attempt=job.attempt,
        members=job.members,
        placed_at=job.placed_at,
        started_at=job.started_at,
        ended_at=None if ended is None else ended.at,
        cause=Cause.UNSPECIFIED if ended is None else ended.cause,
        reason="" if ended is None else ended.reason,
        lost=ended is not None and ended.lost,
        first=None if ended is None else ended.first,
        restore=job.restore,
    )


def ended_debts(job: Job) -> Mapping[int, tuple[MemberSlot, ...]]:
    """Say which ended attempts are still charged for which nodes."""
    return {
        attempt: members
        for attempt, members in sorted(job.unreclaimed.items())
        if members and not (attempt == job.attempt and job.state in LIVE)
    }


# ----------------------------------------------------------------------------- trails


@dataclass(slots=True, kw_only=True)
class Trail:
    """Where the events of one job are stored, in the order the console read them.

    A job's events lie on two streams, so that a place in this list is what numbers
    them. An entry is a sequence of JOBS, or of MEMBERS below zero: there are many.
    """

    places: list[int] = field(default_factory=list[int])
