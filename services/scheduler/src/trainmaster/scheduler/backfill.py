"""What a blocked job keeps: the nodes where it can start soonest, and from when on.

Nothing behind it takes what it needs there, unless it is over by then. The time rests
on limits of what runs; where there is none the nodes are kept until they are free.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from heapq import nsmallest
from typing import NamedTuple

from trainmaster.scheduler.floor import Face, Floor, Keep
from trainmaster.scheduler.gang import levels_of
from trainmaster.scheduler.running import Releases
from trainmaster.scheduler.snapshot import Want


class Opening(NamedTuple):
    """A node that will do: from when on (None: nobody knows), and what is left over."""

    node: str
    at: datetime | None
    spare: int
    free: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Where and when a blocked job can start at the earliest."""

    at: datetime | None
    openings: tuple[Opening, ...]


def earliest(floor: Floor, releases: Releases, want: Want) -> Start | None:
    """Find the nodes where a gang can start soonest; None when there are too few."""
    if want.nodes < 1:
        return None
    level = next(iter(levels_of(want))) if want.topology.endswith("!") else ""
    groups: dict[tuple[object, str], list[Opening]] = {}
    for face, names in floor.names.items():
        if not names or not (want.suits(face.look) and floor.admits(face, want)):
            continue
        if face.keeps and floor.spared(face, want) < 0:
            continue
        likeness = face.look.likeness if want.nodes > 1 else None
        group = groups.setdefault((likeness, ""), [])
        for node in names:
            opening = _opening(floor, releases, node, want)
            if opening is None:
                continue
            if level:
                domain = floor.spots[node].room.frame.domain(level)
                group = groups.setdefault((likeness, domain or node), [])
            group.append(opening)
    wide = [group for group in groups.values() if len(group) >= want.nodes]
    starts = [_start(group, want.nodes) for group in wide]
    return min(starts, key=_when, default=None)


def _opening(floor: Floor, releases: Releases, node: str, want: Want) -> Opening | None:
    face = floor.spots[node].face
    if node in want.owing:
        return None
    if want.accelerators == face.look.accelerators and not face.keeps:
        at = releases.empty_at(node)
        return Opening(node=node, at=at, spare=0, free=face.devices)
    devices = floor.spared(face, want) if face.keeps else face.devices
    cpus, memory = face.cpus, face.memory_bytes
    known: datetime | None = floor.now
    given = iter(releases.on(node))
    while not (
        devices >= want.accelerators
        and memory >= want.memory_bytes
        and (want.accelerators > 0 or cpus >= want.cpus)
    ):
        release = next(given, None)
        if release is None:
            return None
        known = release.at if known is not None else None
        devices += release.devices
        cpus += release.cpus
        memory += release.memory_bytes
    spare = devices - want.accelerators if known is not None else 0
    return Opening(node=node, at=known, spare=spare, free=face.devices)


def _start(group: list[Opening], nodes: int) -> Start:
    chosen = nsmallest(nodes, group, key=_soonest)
    return Start(at=chosen[-1].at, openings=tuple(chosen))


def _soonest(opening: Opening) -> tuple[bool, float, int, str]:
    at = opening.at
    seconds = at.timestamp() if at else 0.0
    return at is None, seconds, -opening.free, opening.node


def _when(start: Start) -> tuple[bool, float, str]:
    at = start.at
    return at is None, at.timestamp() if at else 0.0, start.openings[0].node


def reserve(floor: Floor, owner: str, want: Want, start: Start) -> None:
    """Keep the nodes of a start from all that come behind."""
    for keep_on in start.openings:
        floor.keep(keep_on.node, _keep(floor, owner, want, keep_on, start.at))


def _keep(
    floor: Floor, owner: str, want: Want, opening: Opening, at: datetime | None
) -> Keep:
    if at is None:
        everything = floor.spots[opening.node].face.look.accelerators
        return Keep(owner, want.kinds, max(everything, 1))
    return Keep(owner, want.kinds, want.accelerators, at, opening.spare)


def owners(face: Face, want: Want) -> Iterator[str]:
    """Name for whom such a node is kept, as far as a want comes across it."""
    return (k.owner for k in face.keeps if k.kinds & want.kinds and k.owner)
