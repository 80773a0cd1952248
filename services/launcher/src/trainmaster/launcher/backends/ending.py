"""How ranks end: waited for, signalled with care, stopped by the ladder.

Ranks are not our children: they are waited for and signalled through a handle on their
verified identity. What we send is written down before it is sent.
"""

import asyncio
import os
import time
from collections.abc import Sequence
from typing import Final

from trainmaster.launcher.backends import proc
from trainmaster.launcher.backends.directory import RankDirectory
from trainmaster.launcher.backends.model import Exit, Identity
from trainmaster.launcher.backends.sweep import look, send
from trainmaster.launcher.backends.waiting import all_gone, gone
from trainmaster.runtime.clock import pause

_RECORD_SECONDS: Final = 30.0  # from a rank's end to its record, on a slow disk
_STEP_SECONDS: Final = 0.005
_SHIM_SECONDS: Final = 0.02  # for a shim to write its record and go; a look costs more


async def exit_of(rank: RankDirectory) -> Exit:
    """Wait until a rank has ended, and say how; `unknown` if nobody wrote it down."""
    while rank.started is None and rank.in_flight:
        await pause(_STEP_SECONDS)
    started = rank.started
    if started is None:
        return Exit.not_known()
    await gone(started.rank_identity)
    deadline = time.monotonic() + _RECORD_SECONDS
    shim_gone = False
    while rank.exit is None and not shim_gone and time.monotonic() < deadline:
        shim_gone = await gone(started.shim_identity, within_seconds=_STEP_SECONDS)
    return rank.exit or Exit.not_known(pid=started.rank.pid, by_us=bool(rank.sent))


def signal_group(rank: RankDirectory, number: int) -> bool:
    """Send a signal to a rank and its process group; False if nobody got it."""
    process = _running(rank)
    if process is not None:
        rank.record_signal(number)
        # The rank lives, so its number is its group's; it would have to end, be reaped
        # and all other pids be given out between the two lines for this to go astray.
        return _kill_group(process.pid, number)
    if not _has_shim(rank):
        return False  # a shim stays as long as anything its rank left behind
    reached = [send(member, number) for member in _group_members([rank])]
    return any(reached)


def signal_if_caught(rank: RankDirectory, number: int) -> bool:
    """Send a signal to the rank alone, and only if it has a handler for it."""
    process = _running(rank)
    if process is None or not proc.catches(process.pid, number):
        return False
    rank.record_signal(number)
    return send(process, number)


async def groups_gone(ranks: Sequence[RankDirectory], *, within_seconds: float) -> bool:
    """Wait until the ranks and all of their process groups have ended.

    The rank may be a shell that dies at once while the training it started still saves.
    A shim stays as long as anything its rank left: without one none is looked for.
    """
    deadline = time.monotonic() + within_seconds
    while with_shim := [rank for rank in ranks if _has_shim(rank)]:
        members = await asyncio.to_thread(_group_members, with_shim)
        if not members:
            return True
        left = deadline - time.monotonic()
        if left <= 0 or not await all_gone(members, within_seconds=left):
            return False
        await all_gone(_shims(with_shim), within_seconds=_SHIM_SECONDS)
    return True


def _group_members(ranks: Sequence[RankDirectory]) -> list[Identity]:
    groups = {_pid(rank) for rank in ranks}
    return [seen.identity for seen in look(ranks) if seen.stat.group in groups]


def _running(rank: RankDirectory) -> Identity | None:
    started = rank.started
    if started is None or not proc.is_alive(started.rank_identity):
        return None
    return started.rank_identity


def _has_shim(rank: RankDirectory) -> bool:
    started = rank.started
    return started is not None and proc.is_alive(started.shim_identity)


def _shims(ranks: Sequence[RankDirectory]) -> list[Identity]:
    return [started.shim_identity for rank in ranks if (started := rank.started)]


def _pid(rank: RankDirectory) -> int | None:
    started = rank.started
    return started.rank.pid if started else None


def _kill_group(group: int, number: int) -> bool:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
