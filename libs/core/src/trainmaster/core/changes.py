"""What each event writes into the job, once the table has let it pass.

A writer sees the job as it was before the event and returns the fields that change;
the state itself comes from the table, except where a hold redirects it.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from trainmaster.core.events import (
    Archived,
    AttemptEnded,
    AttemptLost,
    AttemptPlaced,
    AttemptReclaimed,
    AttemptStarted,
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
    Verdict,
)
from trainmaster.core.record import LIVE, Ending, Intent, Job, JobState, Stop
from trainmaster.core.values import Cause

Change = dict[str, Any]


def _submitted(_job: Job, event: Submitted, at: datetime) -> Change:
    return Change(
        state=JobState.HELD if event.spec.hold else JobState.QUEUED,
        submitted_at=at,
        spec=event.spec,
        spec_digest=event.spec_digest,
        submission_key=event.key,
        by=event.by,
        priority=event.spec.priority,
        pool=event.spec.pool,
    )


def _placed(job: Job, event: AttemptPlaced, at: datetime) -> Change:
    return Change(
        attempt=event.attempt,
        pool=event.pool,
        members=event.members,
        placed_at=at,
        start=None,
        started_at=None,
        stop=None,
        ended=None,
        restore=job.chosen.restore if job.chosen else None,
        chosen=None,
        not_before=None,
        unreclaimed={**job.unreclaimed, event.attempt: event.members},
    )


def _ended(_job: Job, event: AttemptEnded, at: datetime) -> Change:
    ending = Ending(
        cause=event.cause,
        reason=event.reason,
        at=at,
        node=event.node,
        first=event.first,
        exits=event.exits,
    )
    return Change(ended=ending)


def _lost(_job: Job, event: AttemptLost, at: datetime) -> Change:
    ending = Ending(
        cause=event.cause,
        reason=event.reason,
        at=at,
        node=event.nodes[0] if event.nodes else "",
        lost=True,
    )
    return Change(ended=ending)


def _stopped(_job: Job, event: StopRequested, at: datetime) -> Change:
    stop = Stop(
        cause=event.cause,
        reason=event.reason,
        at=at,
        grace_seconds=event.grace_seconds,
    )
    return Change(stop=stop)


def _preempted(_job: Job, event: PreemptRequested, at: datetime) -> Change:
    stop = Stop(
        cause=Cause.PREEMPTED,
        reason=f"job {event.for_job} needs the accelerators",
        at=at,
        grace_seconds=event.grace_seconds,
    )
    return Change(stop=stop)


def _cancelled(job: Job, event: CancelRequested, at: datetime) -> Change:
    intent = job.cancel or Intent(by=event.by, reason=event.reason, at=at)
    stop = job.stop
    if job.state in LIVE and stop is None:
        stop = Stop(
            cause=Cause.CANCELLED,
            reason=event.reason,
            at=at,
            grace_seconds=job.spec.stop_grace_seconds,
        )
    return Change(cancel=intent, stop=stop)


def _reclaimed(job: Job, event: AttemptReclaimed, _at: datetime) -> Change:
    left = tuple(
        member
        for member in job.unreclaimed[event.attempt]
        if member.node not in event.nodes
    )
    unreclaimed = {k: v for k, v in job.unreclaimed.items() if k != event.attempt}
    if left:
        unreclaimed[event.attempt] = left
    return Change(unreclaimed=unreclaimed)


def _requeued(job: Job, event: Requeued, _at: datetime) -> Change:
    return Change(
        state=JobState.HELD if job.hold else JobState.QUEUED,
        hold=False,
        retries_used=(0 if event.progressed else job.retries_used) + event.charged,
        attempts_without_progress=(
            0 if event.progressed else job.attempts_without_progress
        )
        + 1,
        step=max(job.step, event.step),
        not_before=event.not_before,
        avoid=event.avoid,
    )


def _judged(_job: Job, event: Verdict, _at: datetime) -> Change:
    return Change(verdict=event.reason)


_Writer = Callable[[Job, Any, datetime], Change]
CHANGES: Final[Mapping[type[Transition], _Writer]] = {
    Submitted: _submitted,
    AttemptPlaced: _placed,
    StartOrdered: lambda _job, event, _at: Change(start=event),
    AttemptStarted: lambda _job, _event, at: Change(started_at=at),
    AttemptEnded: _ended,
    AttemptLost: _lost,
    StopRequested: _stopped,
    PreemptRequested: _preempted,
    CancelRequested: _cancelled,
    Held: lambda job, _event, _at: Change(hold=job.state is JobState.SETTLING),
    Released: lambda _job, _event, _at: Change(hold=False),
    Reprioritized: lambda _job, event, _at: Change(priority=event.priority),
    CheckpointChosen: lambda _job, event, _at: Change(chosen=event),
    AttemptReclaimed: _reclaimed,
    Requeued: _requeued,
    Succeeded: _judged,
    Failed: _judged,
    Cancelled: _judged,
    Archived: lambda _job, _event, _at: Change(archived=True),
}
