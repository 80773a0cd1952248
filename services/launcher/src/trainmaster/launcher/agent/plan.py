"""Decides what an agent does next for one job. Pure.

Orders of one job are compared by (attempt, prepare < start < stop < close); a lower one
is ignored, but a close is never too late: it is answered for any attempt. Without an
order nothing is done.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from trainmaster.core.messages import Assignment, Order
from trainmaster.launcher.agent.disk import MemberRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepare:
    """Check this node for the attempt, and lease what it needs."""

    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Spawn what does not run yet."""

    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Go through the stop ladder."""

    attempt: int
    grace_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Close:
    """Let nothing start any more, end what runs, prove that nothing is left."""

    attempt: int
    grace_seconds: float


Step = Prepare | Start | Stop | Close


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the launcher wants of one job: the highest order, and closes by attempt."""

    highest: Assignment
    closes: Mapping[int, Assignment]


def heard(wish: Wish | None, offered: Assignment) -> Wish:
    """Take an order in."""
    closes = dict(wish.closes) if wish else {}
    if offered.order is Order.CLOSE:
        closes[offered.attempt] = offered
    highest = wish.highest if wish and not _higher(wish.highest, offered) else offered
    return Wish(highest=highest, closes=closes)


def _higher(known: Assignment, offered: Assignment) -> bool:
    """Whether an order replaces another; the same one again may carry more."""
    return _place(offered) >= _place(known)


def _place(assignment: Assignment) -> tuple[int, int]:
    return assignment.attempt, assignment.order.rank


def next_step(wish: Wish | None, records: Mapping[int, MemberRecord]) -> Step | None:
    """Say what to do now; None when all that is wanted is done."""
    if wish is None:
        return None
    return _next_close(wish, records) or _next_move(wish.highest, records)


def _next_close(wish: Wish, records: Mapping[int, MemberRecord]) -> Close | None:
    """Close what is ordered to be, and what a higher attempt replaces, oldest first."""
    replaced = {number for number in records if number < wish.highest.attempt}
    for attempt in sorted(replaced | wish.closes.keys()):
        record = records.get(attempt)
        if record is None or record.closed is None:
            order = wish.closes.get(attempt)
            grace = order.grace_seconds if order else 0.0
            return Close(attempt=attempt, grace_seconds=grace)
    return None


def _next_move(wanted: Assignment, records: Mapping[int, MemberRecord]) -> Step | None:
    attempt, record = wanted.attempt, records.get(wanted.attempt)
    if record is not None and record.closed is not None:
        return None
    match wanted.order:
        case Order.PREPARE if record is None or record.prepared is None:
            return Prepare(attempt=attempt)
        case Order.START if record is None or record.started is None:
            return Start(attempt=attempt)
        case Order.STOP if record is None or record.stopped is None:
            return Stop(attempt=attempt, grace_seconds=wanted.grace_seconds)
        case _:
            return None
