"""Lays out the floor of a plan: windows, reservations, spares, what is kept for whom.

Spares are the whole free nodes with most devices, the last by name: they are left to
jobs that lost a node. A job that failed finds its nodes kept for it.
"""

from collections.abc import Mapping
from datetime import datetime

from trainmaster.scheduler.floor import Face, Floor, Keep, closing
from trainmaster.scheduler.snapshot import Hold, Kind, Room, Snapshot
from trainmaster.scheduler.teams import Span


def floor_of(snapshot: Snapshot) -> Floor:
    """Lay out the nodes in service."""
    floor = Floor(now=snapshot.now)
    marks, spares = _marks(snapshot), _spares(snapshot)
    for node, room in snapshot.rooms.items():
        look = room.frame.look
        if look.trouble:
            continue
        closes_at, kept_by = marks.get(node, (None, ""))
        floor.put(
            room,
            Face(
                look,
                len(room.devices_free),
                room.cpus_free,
                room.memory_free_bytes,
                closes_at,
                kept_by,
                node in spares,
            ),
        )
    floor.settle()
    for key, hold in sorted(snapshot.holds.items()):
        if hold.until > snapshot.now:
            _keep(floor, str(key.job), hold)
    return floor


def _keep(floor: Floor, owner: str, hold: Hold) -> None:
    kinds = Kind.DEVICES if hold.accelerators else Kind.CPUS
    for node in hold.nodes:
        if node in floor.spots:
            floor.keep(node, Keep(owner, kinds, hold.accelerators))


def _spares(snapshot: Snapshot) -> frozenset[str]:
    count = snapshot.settings.spare_nodes
    if not count:
        return frozenset()
    whole = [
        (room.frame.look.accelerators, node)
        for node, room in snapshot.rooms.items()
        if not room.frame.look.trouble and _is_whole(room)
    ]
    return frozenset(node for _, node in sorted(whole)[-count:])


def _is_whole(room: Room) -> bool:
    return 0 < room.frame.look.accelerators == len(room.devices_free)


_Mark = tuple[datetime | None, str]


def _marks(snapshot: Snapshot) -> Mapping[str, _Mark]:
    """Say when each node closes to whom may not stay, and for whom it is kept now."""
    marks: dict[str, _Mark] = {}
    for name, span in _named_spans(snapshot):
        for node in span.nodes or snapshot.rooms:
            closes_at, kept_by = marks.get(node, (None, ""))
            if span.keeps and _runs(span, snapshot.now):
                marks[node] = (closes_at, kept_by or name)
            else:
                due = closing(span.starts_at, snapshot.now)
                marks[node] = (min(closes_at or due, due), kept_by)
    return marks


def _named_spans(snapshot: Snapshot) -> list[tuple[str, Span]]:
    settings = snapshot.settings
    spans = [*sorted(settings.windows.items()), *sorted(settings.reservations.items())]
    return [(name, span) for name, span in spans if not span.over(snapshot.now)]


def _runs(span: Span, now: datetime) -> bool:
    return span.starts_at is None or span.starts_at <= now


def enters(snapshot: Snapshot, team: str, priority: int) -> tuple[str, ...]:
    """Name the reservations that a job may use."""
    return tuple(
        name
        for name, span in sorted(snapshot.settings.reservations.items())
        if span.team in ("", team) and priority >= span.priority
    )
