"""What is still free while one plan is made: it shrinks and never grows.

Nodes that look alike and have as much free share a face, and a want is compared with
faces, not with nodes. Best fit keeps whole nodes whole: the node where the least is
left over, a partly used one before a whole one, nodes a job would rather avoid last,
then by name.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import NamedTuple

from trainmaster.scheduler.labels import Look, pick
from trainmaster.scheduler.snapshot import Kind, Room, Want


class Keep(NamedTuple):
    """Something of a node kept for a job from `at` on, or at once and until it comes.

    `spare` is how many devices others may still hold when it comes.
    """

    owner: str
    kinds: Kind
    devices: int
    at: datetime | None = None
    spare: int = 0


class Face(NamedTuple):
    """All that a node's fitness depends on but its name."""

    look: Look
    devices: int
    cpus: int
    memory_bytes: int
    closes_at: datetime | None = None
    kept_by: str = ""
    spare: bool = False
    keeps: tuple[Keep, ...] = ()


class Fit(NamedTuple):
    """How well a face fits a want; the least is the best."""

    foreign: bool
    spare: bool
    type_: int
    left_over: int
    whole: bool
    rest: int
    name: str


@dataclass(slots=True)
class Spot:
    """One node in service, as this plan has left it."""

    room: Room
    devices: tuple[int, ...]
    face: Face


@dataclass(slots=True)
class Candidates:
    """The faces that fit one want, best first, with the new ones not yet seen."""

    heap: list[tuple[Fit, Face]]
    seen: int = 0


@dataclass(slots=True)
class Floor:
    """All nodes of a pool that are in service."""

    now: datetime
    spots: dict[str, Spot] = field(default_factory=dict[str, Spot])
    names: dict[Face, list[str]] = field(default_factory=dict[Face, list[str]])
    _born: list[Face] = field(default_factory=list[Face])
    _candidates: dict[Want, Candidates] = field(default_factory=dict[Want, Candidates])

    def put(self, room: Room, face: Face) -> None:
        """Lay out one node."""
        self.spots[room.frame.node] = Spot(room, room.devices_free, face)
        self.names.setdefault(face, []).append(room.frame.node)

    def settle(self) -> None:
        """Put the names in order once all nodes are laid out."""
        for names in self.names.values():
            names.sort()

    def holds(self, face: Face, want: Want) -> bool:
        """Tell whether a member fits on such a node now and may go there."""
        return (
            want.suits(face.look)
            and face.memory_bytes >= want.memory_bytes
            and (want.accelerators > 0 or face.cpus >= want.cpus)
            and face.devices >= want.accelerators
            and self.admits(face, want)
            and (not face.keeps or self.spared(face, want) >= want.accelerators)
        )

    def admits(self, face: Face, want: Want) -> bool:
        """Tell whether a want may go to such a node, whatever is free there."""
        if face.closes_at is not None and not self._over_by(want, face.closes_at):
            return False
        if face.kept_by and face.kept_by not in want.enters:
            return False
        return not face.spare or want.spares

    def _over_by(self, want: Want, at: datetime) -> bool:
        seconds = want.seconds
        return seconds > 0 and seconds <= (at - self.now).total_seconds()

    def spared(self, face: Face, want: Want) -> int:
        """Count the devices that are not kept for others; -1 keeps all away."""
        free, most = face.devices, face.devices
        for keep in face.keeps:
            if self._harmless(keep, want):
                continue
            if keep.kinds & want.kinds & ~Kind.DEVICES:
                return -1
            if keep.at is None:
                free -= keep.devices
            else:
                most = min(most, keep.spare)
        return min(free, most)

    def _harmless(self, keep: Keep, want: Want) -> bool:
        if keep.owner == want.owner or not keep.kinds & want.kinds:
            return True
        return keep.at is not None and self._over_by(want, keep.at)

    def fit(self, face: Face, want: Want) -> Fit:
        """Say how well such a node fits."""
        look = face.look
        type_ = want.types.index(look.likeness.accelerator) if want.types else 0
        own = bool(want.owner) and any(k.owner == want.owner for k in face.keeps)
        # A job that needs no device goes where there are few.
        left, whole, rest = look.accelerators, False, face.cpus - want.cpus
        if want.accelerators:
            left, rest = face.devices - want.accelerators, 0
            whole = face.devices == look.accelerators
        first = self.names[face][0]
        return Fit(not own, face.spare, type_, left, whole, rest, first)

    def fitting(self, want: Want) -> Candidates:
        """Give the faces that fit a want now, as a heap to be popped from."""
        known = self._candidates.get(want)
        if known is None:
            heap = [
                (self.fit(face, want), face)
                for face, names in self.names.items()
                if names and self.holds(face, want)
            ]
            heapify(heap)
            known = self._candidates[want] = Candidates(heap, seen=len(self._born))
        for face in islice(self._born, known.seen, None):
            if self.names[face] and self.holds(face, want):
                heappush(known.heap, (self.fit(face, want), face))
        known.seen = len(self._born)
        return known

    def single(self, want: Want) -> str | None:
        """Choose the node of a job that needs but one, without looking further."""
        if want.avoid or want.owing:
            return self._careful(want)
        heap = self.fitting(want).heap
        while heap:
            names = self.names[heap[0][1]]
            if names:
                return names[0]
            heappop(heap)
        return None

    def _careful(self, want: Want) -> str | None:
        """Choose the node of a job that would rather not, or must not, use some."""
        names = [name for face in self.faces(want) for name in self.names[face]]
        allowed = [name for name in names if name not in want.owing]
        liked = (name for name in allowed if name not in want.avoid)
        return next(liked, None) or next(iter(allowed), None)

    def faces(self, want: Want) -> list[Face]:
        """List the faces that fit a want now, best first."""
        heap = self.fitting(want).heap
        fits = {face: fit for fit, face in heap if self.names[face]}
        return sorted(fits, key=fits.__getitem__)

    def take(self, node: str, want: Want) -> tuple[int, ...]:
        """Give a member its share of a node."""
        spot = self.spots[node]
        taken: tuple[int, ...] = ()
        if want.accelerators:
            taken = pick(spot.room.frame, spot.devices, want.accelerators)
            gone = set(taken)
            spot.devices = tuple(i for i in spot.devices if i not in gone)
        face = spot.face
        after = Face(
            face.look,
            len(spot.devices),
            face.cpus if want.accelerators else face.cpus - want.cpus,
            face.memory_bytes - want.memory_bytes,
            face.closes_at,
            face.kept_by,
            face.spare,
            tuple(self._after(face.keeps, want)) if face.keeps else (),
        )
        self.move(node, after)
        return taken

    def _after(self, keeps: Iterable[Keep], want: Want) -> Iterator[Keep]:
        for keep in keeps:
            if keep.at is None and keep.owner == want.owner:
                continue  # it has come
            if keep.at is None or self._harmless(keep, want):
                yield keep
            else:
                yield keep._replace(spare=keep.spare - want.accelerators)

    def keep(self, node: str, keep: Keep) -> None:
        """Keep something of a node."""
        face = self.spots[node].face
        self.move(node, face._replace(keeps=(*face.keeps, keep)))

    def move(self, node: str, face: Face) -> None:
        """Give a node another face."""
        spot = self.spots[node]
        if spot.face == face:
            return
        old = self.names[spot.face]
        del old[bisect_left(old, node)]
        spot.face = face
        names = self.names.get(face)
        if names is None:
            names = self.names[face] = []
        if not names:
            self._born.append(face)
        insort(names, node)


def closing(at: datetime | None, now: datetime) -> datetime:
    """Give a time that no job outlives: one that has passed already, or `at`."""
    return now - timedelta(seconds=1) if at is None else at
