"""Prepare, compare, start, end: moves placed attempts to running and to ended. Pure.

An attempt starts when all its members are prepared and equal, runs when all have
started, and ends with its first failing rank, with the clean exit of all its ranks, or
with a stop that every member has carried out. Whether the job goes on afterwards is
decided elsewhere; so are deadlines, which need no launcher to fall due.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from trainmaster.core import subjects
from trainmaster.core.decision import Changed, Decision, Write
from trainmaster.core.envelope import Entry
from trainmaster.core.events import (
    AttemptEnded,
    AttemptStarted,
    StartOrdered,
    Transition,
)
from trainmaster.core.facts import CheckFailure
from trainmaster.core.ids import MemberKey
from trainmaster.core.moment import Moment
from trainmaster.core.record import Job, JobState
from trainmaster.core.values import Cause, MemberSlot, RankExit
from trainmaster.launcher import state as state_
from trainmaster.launcher.exits import briefly, cause_of, first_failing, sentence
from trainmaster.launcher.settings import SERVICE
from trainmaster.launcher.state import NO_REPORT, Member, State
from trainmaster.launcher.versions import Reported, odd_one


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A member of the current attempt: what it got, and what it reported."""

    slot: MemberSlot
    report: Member

    @property
    def all_exited(self) -> bool:
        """The end of every rank of this member is known."""
        return len(self.report.exits) >= self.slot.ranks


class Launcher:
    """Moves placed attempts to running ones, and stopping ones to ended."""

    name = SERVICE
    hears = (subjects.all_of("job"), subjects.all_of("member"))

    def fold(self, state: State, entry: Entry) -> Sequence[Changed]:
        """Take one event in and name the rows it touched."""
        return tuple(state_.fold(state, entry))

    def decide(self, state: State, facts: Mapping[str, Any], now: Moment) -> Decision:
        """Say which attempts start, run and end now."""
        del facts, now  # what is decided here follows from reports alone
        moves = (
            (job, move(job, parts_of(job, state)))
            for job, move in _live(state)
            if job.state is not JobState.RUNNING or state.members.has_news(job.key.job)
        )
        return Decision(
            groups=tuple(
                (Write(key=job.key, event=event),)
                for job, event in moves
                if event is not None
            )
        )


def _live(state: State) -> "list[tuple[Job, _Move]]":
    return [
        (job, move)
        for job_state, move in _MOVES.items()
        for job in state.jobs.in_state(job_state)
    ]


def parts_of(job: Job, state: State) -> tuple[Part, ...]:
    """Join the members of the current attempt with their reports, in rank order."""
    return tuple(
        Part(
            slot=slot,
            report=state.members.get(
                MemberKey(job.pool, slot.node, job.key.job, job.attempt), NO_REPORT
            ),
        )
        for slot in job.members
    )


# ------------------------------------------------------------------------------ start


def _start_prepared(job: Job, parts: Sequence[Part]) -> Transition | None:
    """Order the start when all are prepared and equal; end what cannot start."""
    failed = _prepare_failure(job, parts) or _lost_member(job, parts)
    if failed is not None:
        return failed
    prepared = [part.report.prepared for part in parts if part.report.prepared]
    if len(prepared) < len(parts):
        return None
    odd = odd_one(
        [
            Reported(node=part.slot.node, versions=report.versions)
            for part, report in zip(parts, prepared, strict=True)
        ]
    )
    if odd is not None:
        return AttemptEnded(
            attempt=job.attempt,
            cause=Cause.VERSION_MISMATCH,
            reason=odd.sentence,
            node=odd.node,
        )
    master = min(range(len(parts)), key=lambda index: parts[index].slot.first_rank)
    return StartOrdered(
        attempt=job.attempt,
        master_address=prepared[master].address,
        master_port=prepared[master].port,
        addresses=tuple(report.address for report in prepared),
        restore=job.restore,
    )


def _prepare_failure(job: Job, parts: Sequence[Part]) -> AttemptEnded | None:
    for part in parts:
        prepared = part.report.prepared
        if prepared is not None and prepared.failure is not None:
            return _failed_check(
                job, part.slot.node, Cause.PREPARE_FAILED, prepared.failure
            )
    return None


def _failed_check(
    job: Job, node: str, cause: Cause, failure: CheckFailure
) -> AttemptEnded:
    about = f" `{failure.field}`" if failure.field else ""
    wanted = f", expected {failure.expected}" if failure.expected else ""
    evidence = f" ({failure.evidence})" if failure.evidence else ""
    return AttemptEnded(
        attempt=job.attempt,
        cause=cause,
        reason=f"{node}: {failure.check}{about}: {failure.seen}{wanted}{evidence}",
        node=node,
    )


# -------------------------------------------------------------------------------- run


def _confirm_started(job: Job, parts: Sequence[Part]) -> Transition | None:
    """Say that the attempt runs when all members do, or did so quickly."""
    failed = _failure(job, parts)
    if failed is not None:
        return failed
    if all(part.report.started or part.all_exited for part in parts):
        return AttemptStarted(attempt=job.attempt)
    return None


def _end_if_over(job: Job, parts: Sequence[Part]) -> Transition | None:
    failed = _failure(job, parts)
    if failed is not None:
        return failed
    if all(part.all_exited for part in parts):
        return AttemptEnded(
            attempt=job.attempt,
            cause=Cause.COMPLETED,
            reason="all ranks exited 0",
            exits=briefly(_exits(parts)),
        )
    return None


def _failure(job: Job, parts: Sequence[Part]) -> AttemptEnded | None:
    """End an attempt of which a part cannot go on; the first to fail is to blame."""
    for part in parts:
        started = part.report.started
        if started is not None and started.failure is not None:
            return _failed_check(
                job, part.slot.node, Cause.START_FAILED, started.failure
            )
    return _rank_failure(job, _exits(parts)) or _lost_member(job, parts)


def _rank_failure(job: Job, exits: Sequence[RankExit]) -> AttemptEnded | None:
    first = first_failing(exits)
    if first is None:
        return None
    return AttemptEnded(
        attempt=job.attempt,
        cause=cause_of(first),
        reason=sentence(first),
        node=first.node,
        first=first,
        exits=briefly(exits),
    )


def _lost_member(job: Job, parts: Sequence[Part]) -> AttemptEnded | None:
    """End an attempt of which a node has nothing left, though nobody told it so."""
    for part in parts:
        closed = part.report.closed
        if closed is not None and not part.all_exited:
            return AttemptEnded(
                attempt=job.attempt,
                cause=Cause.NODE_LOST,
                reason=f"{part.slot.node} has nothing of the attempt any more: "
                f"{closed.proof.how} {closed.proof.detail}".rstrip(),
                node=part.slot.node,
                exits=briefly(_exits(parts)),
            )
    return None


def _exits(parts: Sequence[Part]) -> list[RankExit]:
    return [exit_ for part in parts for exit_ in part.report.exits.values()]


# ------------------------------------------------------------------------------- stop


def _end_stopped(job: Job, parts: Sequence[Part]) -> Transition | None:
    """End an attempt when its stop is carried out, at once if it never started."""
    if job.start is not None and not all(map(_is_quiet, parts)):
        return None
    exits = _exits(parts)
    stop = job.stop
    return AttemptEnded(
        attempt=job.attempt,
        cause=stop.cause if stop else Cause.UNSPECIFIED,
        reason=stop.reason if stop else "",
        first=first_failing(exits),
        exits=briefly(exits),
    )


def _is_quiet(part: Part) -> bool:
    report = part.report
    return bool(report.stopped or report.closed) or part.all_exited


_Move = Callable[[Job, Sequence[Part]], Transition | None]
_MOVES: Final[Mapping[JobState, _Move]] = {
    JobState.PLACED: _start_prepared,
    JobState.STARTING: _confirm_started,
    JobState.RUNNING: _end_if_over,
    JobState.STOPPING: _end_stopped,
}
