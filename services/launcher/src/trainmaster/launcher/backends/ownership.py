"""Decides which processes of a machine belong to an attempt, and by what evidence.

Proven: the shims and ranks themselves; what carries an attempt's token in its
environment; what is in its cgroups; what is in a session that one of these leads, for
no session can be joined from outside; and what descends from one of these.

A session whose leader is gone proves only those of its members that were there while
the shim was known to lead it: later its number may have been given to somebody else.
The others are doubtful, which is said and never acted on.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from trainmaster.launcher.backends.model import Evidence, Identity
from trainmaster.launcher.backends.proc import Stat


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """What an attempt's processes are recognised by.

    `shims` says of each shim until which tick after boot it was known to live.
    `spared` are never named, whatever they look like.
    """

    shims: Mapping[Identity, int] = field(default_factory=dict[Identity, int])
    ranks: frozenset[Identity] = frozenset()
    tokens: frozenset[str] = frozenset()
    cgroup_pids: frozenset[int] = frozenset()
    spared: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All processes at one moment; tokens by pid where one was seen."""

    boot_id: str
    stats: tuple[Stat, ...]
    tokens: Mapping[int, str]


def owned(snapshot: Snapshot, marks: Marks) -> Mapping[int, Evidence]:
    """Name the living processes of an attempt by pid, and the evidence for each."""
    stats = [stat for stat in snapshot.stats if stat.pid not in marks.spared]
    proven = _marked(snapshot, stats, marks)
    while more := _related(stats, proven):
        proven |= more
    doubtful = {stat.pid: Evidence.DOUBTFUL for stat in _leaderless(snapshot, marks)}
    found = doubtful | proven
    return {s.pid: found[s.pid] for s in stats if s.pid in found and not s.dead}


def _marked(
    snapshot: Snapshot, stats: Iterable[Stat], marks: Marks
) -> dict[int, Evidence]:
    """Name what needs no other process to be recognised."""
    known_until = {shim.pid: ticks for shim, ticks in marks.shims.items()}
    found = {
        stat.pid: Evidence.SESSION
        for stat in _leaderless(snapshot, marks)
        if stat.start_ticks <= known_until[stat.session]
    }
    for stat in stats:
        identity = Identity(
            pid=stat.pid, start_ticks=stat.start_ticks, boot_id=snapshot.boot_id
        )
        if identity in marks.shims:
            found[stat.pid] = Evidence.SHIM
        elif identity in marks.ranks:
            found[stat.pid] = Evidence.RANK
        elif snapshot.tokens.get(stat.pid) in marks.tokens:
            found[stat.pid] = Evidence.TOKEN
        elif stat.pid in marks.cgroup_pids:
            found[stat.pid] = Evidence.CGROUP
    return found


def _related(
    stats: Iterable[Stat], proven: Mapping[int, Evidence]
) -> dict[int, Evidence]:
    """Name what a proven process leads in its session, or has as its child."""
    unknown = [stat for stat in stats if stat.pid not in proven]
    children = {s.pid: Evidence.DESCENDANT for s in unknown if s.parent in proven}
    members = {s.pid: Evidence.SESSION for s in unknown if s.session in proven}
    return children | members


def _leaderless(snapshot: Snapshot, marks: Marks) -> Iterable[Stat]:
    """Find members of sessions with a shim's number and without any leader."""
    alive = {stat.pid for stat in snapshot.stats}
    numbers = {
        shim.pid
        for shim in marks.shims
        if shim.boot_id == snapshot.boot_id and shim.pid not in alive
    }
    return (
        stat
        for stat in snapshot.stats
        if stat.session in numbers and stat.pid not in marks.spared
    )
