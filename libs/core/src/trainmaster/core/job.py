"""The one table that says which event moves a job where, and `evolve` that obeys it.

`evolve` is pure and total: an event that does not follow from the job's state is `Void`
and leaves the job as it was; all readers void alike. Documents, diagram and tests are
derived from `TRANSITIONS`; each state in `trainmaster.core.record` says who moves next.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

from trainmaster.core.changes import CHANGES
from trainmaster.core.events import (
    Archived,
    AttemptEnded,
    AttemptLost,
    AttemptPlaced,
    AttemptReclaimed,
    AttemptStarted,
    AttemptTransition,
    Cancelled,
    CancelRequested,
    CheckpointChosen,
    Failed,
    Held,
    PreemptRequested,
    Released,
    Reprioritized,
    Requeued,
    StartOrdered,
    StopRequested,
    Submitted,
    Succeeded,
    Transition,
)
from trainmaster.core.record import FINAL, LIVE, Job, JobState

S = JobState
_NOT_FINAL: Final = frozenset({S.QUEUED, S.HELD, *LIVE, S.SETTLING})

_Moves = Mapping[type[Transition], Mapping[JobState, JobState]]


def _all(sources: frozenset[JobState], target: JobState) -> dict[JobState, JobState]:
    return dict.fromkeys(sources, target)


def _stay(sources: frozenset[JobState]) -> dict[JobState, JobState]:
    return {state: state for state in sources}


_STOP: Final = {S.PLACED: S.STOPPING, S.STARTING: S.STOPPING, S.RUNNING: S.STOPPING}

TRANSITIONS: Final[_Moves] = MappingProxyType(
    {
        Submitted: {S.NEW: S.QUEUED},  # HELD with `hold: true`
        AttemptPlaced: {S.QUEUED: S.PLACED},
        StartOrdered: {S.PLACED: S.STARTING},
        AttemptStarted: {S.STARTING: S.RUNNING, S.STOPPING: S.STOPPING},
        AttemptEnded: _all(LIVE, S.SETTLING),
        AttemptLost: _all(LIVE, S.SETTLING),
        PreemptRequested: _STOP,
        StopRequested: _STOP,
        CancelRequested: {
            S.QUEUED: S.SETTLING,
            S.HELD: S.SETTLING,
            **_STOP,
            S.STOPPING: S.STOPPING,
            S.SETTLING: S.SETTLING,
        },
        Held: {S.QUEUED: S.HELD, S.SETTLING: S.SETTLING},
        Released: {S.HELD: S.QUEUED},
        Reprioritized: _stay(_NOT_FINAL),
        # QUEUED only before a first attempt with `resume_from`
        CheckpointChosen: {S.SETTLING: S.SETTLING, S.QUEUED: S.QUEUED},
        AttemptReclaimed: _stay(_NOT_FINAL | FINAL),
        Requeued: {S.SETTLING: S.QUEUED},  # HELD when a hold was asked for
        Succeeded: {S.SETTLING: S.SUCCEEDED},
        Failed: {S.SETTLING: S.FAILED},
        Cancelled: {S.SETTLING: S.CANCELLED},
        Archived: _stay(FINAL),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Void:
    """The event does not follow from the job's state; everybody ignores it."""

    reason: str


def evolve(job: Job, event: Transition, at: datetime) -> Job | Void:
    """Fold one event into the job, or say why it does not follow.

    `at` is the server's time of the event. Never raises.
    """
    kind = type(event)
    if isinstance(event, AttemptTransition):
        wrong = _wrong_attempt(job, event)
        if wrong:
            return Void(reason=wrong)
    target = TRANSITIONS.get(kind, {}).get(job.state)
    if target is None:
        return Void(reason=f"{kind.__name__} does not follow {job.state}")
    objection = _GUARDS[kind](job, event) if kind in _GUARDS else ""
    if objection:
        return Void(reason=objection)
    change = {"state": target, **CHANGES[kind](job, event, at)}
    if change["state"] is not job.state:
        change["since"] = at
    return job.changed(change)


def _wrong_attempt(job: Job, event: AttemptTransition) -> str:
    if isinstance(event, AttemptReclaimed):
        return ""
    expected = job.attempt + isinstance(event, AttemptPlaced)
    if event.attempt == expected:
        return ""
    return f"attempt {event.attempt} is not the current one ({expected})"


def _placeable(job: Job, event: AttemptPlaced) -> str:
    if job.cancel:
        return "a cancel was requested"
    if not event.members or len({m.node for m in event.members}) < len(event.members):
        return "an attempt needs at least one node, each of them once"
    return ""


def _choosable(job: Job, _event: CheckpointChosen) -> str:
    if job.state is S.SETTLING:
        return ""
    if job.attempt or not job.spec.checkpoint.resume_from:
        return "only a first attempt with `resume_from` waits for a restore point"
    return ""


def _reclaimable(job: Job, event: AttemptReclaimed) -> str:
    if event.attempt == job.attempt and job.state in LIVE:
        return "the attempt has not ended"
    owed = {member.node for member in job.unreclaimed.get(event.attempt, ())}
    if not event.nodes or not owed.issuperset(event.nodes):
        return "not charged for these nodes"
    return ""


def _requeueable(job: Job, event: Requeued) -> str:
    if job.cancel:
        return "a cancel was requested"
    missing = set(job.owes_proof()) - set(event.fenced)
    return f"no proof of {', '.join(sorted(missing))}" if missing else ""


def _may_succeed(job: Job, _event: Succeeded) -> str:
    if job.cancel and not job.clean:
        return "a cancel was requested and not every rank had exited 0 by itself"
    return ""


def _archivable(job: Job, _event: Archived) -> str:
    if job.archived:
        return "archived already"
    if any(job.unreclaimed.values()):
        return "nodes are still charged"
    return ""


_Guard = Callable[[Job, Any], str]
_GUARDS: Final[Mapping[type[Transition], _Guard]] = {
    AttemptPlaced: _placeable,
    CheckpointChosen: _choosable,
    AttemptReclaimed: _reclaimable,
    Requeued: _requeueable,
    Succeeded: _may_succeed,
    Archived: _archivable,
}
