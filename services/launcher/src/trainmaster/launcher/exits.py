"""Decides what an exit means: which came first, whose fault it is, in words. Pure."""

import signal
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from trainmaster.core.values import Cause, RankExit
from trainmaster.launcher.settings import EXITS_NAMED_MAX

_LAST: Final = datetime.max.replace(tzinfo=UTC)
_KILL: Final = 9


def first_failing(exits: Iterable[RankExit]) -> RankExit | None:
    """Find the exit that was not clean and came first; the others followed from it.

    An exit nobody saw has no time and is blamed only when there is no other.
    """
    failing = [exit_ for exit_ in exits if not exit_.clean]
    return min(failing, key=lambda e: (e.at or _LAST, e.rank), default=None)


def cause_of(first: RankExit) -> Cause:
    """Name the cause; a kill that nobody of us sent is not the user's doing."""
    if first.out_of_memory:
        return Cause.OUT_OF_MEMORY
    if first.unknown or first.by_us or first.signal == _KILL:
        return Cause.INFRASTRUCTURE
    return Cause.RANK_FAILED


def sentence(exit_: RankExit) -> str:
    """Say how a rank ended."""
    return f"rank {exit_.rank} on {exit_.node} {_how(exit_)}"


def _how(exit_: RankExit) -> str:
    after = " after a signal from us" if exit_.by_us else ""
    if exit_.out_of_memory:
        return f"ran out of memory{after}"
    if exit_.unknown:
        return "ended, but nobody saw how"
    if exit_.signal:
        return f"was ended by {_signal_name(exit_.signal)}{after}"
    return f"exited with {exit_.code}{after}"


def _signal_name(number: int) -> str:
    known = {int(each): each.name for each in signal.Signals}
    name = known.get(number)
    return f"signal {number} ({name})" if name else f"signal {number}"


def briefly(exits: Iterable[RankExit]) -> tuple[RankExit, ...]:
    """Order exits by rank and leave their output out, so that many fit in a message."""
    ordered = sorted(exits, key=lambda exit_: exit_.rank)[:EXITS_NAMED_MAX]
    return tuple(exit_.model_copy(update={"last_lines": ()}) for exit_ in ordered)
