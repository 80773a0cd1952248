"""What is still free while one plan is made: it shrinks and never grows.

Best fit that keeps whole nodes whole: the node where the least is left over, a partly
used one before a whole one, nodes a job would rather avoid last, then by name.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntFlag
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from trainmaster.core.values import MemberSlot
from trainmaster.scheduler.snapshot import Request, Room, Want


class Kind(IntFlag):
    """Kinds of what a node has; a reservation keeps the kinds its owner wants."""

    NONE = 0
    DEVICES = 1
    CPUS = 2
    MEMORY = 4


class Fit(NamedTuple):
    """How well a node fits a want; the least is the best."""

    avoided: bool
    left_over: int
    whole: bool
    rest: int
    node: str


def kinds_of(want: Want) -> Kind:
    """Name what a member takes away from others."""
    kinds = Kind.DEVICES if want.accelerators else Kind.CPUS
    return kinds | Kind.MEMORY if want.memory_bytes else kinds


@dataclass(slots=True)
class Spot:
    """One node in service, as this plan has left it."""

    room: Room
    devices: tuple[int, ...]
    cpus: int
    memory_bytes: int
    reserved: Kind = Kind.NONE
    reserved_by: Request | None = None

    def holds(self, want: Want) -> bool:
        """Tell whether a member fits now, reservations aside."""
        return (
            len(self.devices) >= want.accelerators
            and (want.accelerators > 0 or self.cpus >= want.cpus)
            and self.memory_bytes >= want.memory_bytes
            and self.room.cpus >= want.cpus
        )

    def fit(self, want: Want) -> Fit:
        """Say how well a member fits here."""
        avoided = self.room.node in want.avoid
        if want.accelerators:
            left = len(self.devices) - want.accelerators
            whole = len(self.devices) == self.room.accelerators
            return Fit(avoided, left, whole, 0, self.room.node)
        # A job that needs no device goes where there are few.
        left, rest = self.room.accelerators, self.cpus - want.cpus
        return Fit(avoided, left, False, rest, self.room.node)  # noqa: FBT003 a field

    def take(self, want: Want) -> tuple[int, ...]:
        """Give a member its share; lowest device indices first."""
        taken = self.devices[: want.accelerators]
        self.devices = self.devices[want.accelerators :]
        if not want.accelerators:
            self.cpus -= want.cpus
        self.memory_bytes -= want.memory_bytes
        return taken


@dataclass(slots=True)
class Candidates:
    """The nodes that fit one want, best first, with the changes not yet seen."""

    heap: list[Fit]
    seen: int = 0


@dataclass(slots=True)
class Floor:
    """All nodes of a pool that are in service."""

    spots: dict[str, Spot]
    _touched: list[str] = field(default_factory=list[str])
    _candidates: dict[Want, Candidates] = field(default_factory=dict[Want, Candidates])

    def take(self, request: Request) -> tuple[MemberSlot, ...] | None:
        """Place all of a gang, or none of it."""
        want = request.want
        fits = self._best(want)
        if fits is None:
            return None
        return tuple(
            MemberSlot(
                node=fit.node,
                accelerators=self.spots[fit.node].take(want),
                first_rank=index * request.ranks_per_node,
                ranks=request.ranks_per_node,
            )
            for index, fit in enumerate(fits)
        )

    def could(self, want: Want) -> Iterator[Spot]:
        """List the nodes that could take a member if nothing ran there."""
        return (
            spot
            for spot in self.spots.values()
            if spot.room.suits(want) and spot.room.node not in want.owing
        )

    def reserve(self, request: Request) -> None:
        """Keep what a blocked request could use from all that come behind it."""
        kinds = kinds_of(request.want)
        for spot in self.could(request.want):
            spot.reserved |= kinds
            spot.reserved_by = spot.reserved_by or request

    def _best(self, want: Want) -> list[Fit] | None:
        """Choose the nodes of a gang; None when there are too few."""
        if want.nodes < 1:
            return None
        heap = self._candidates_of(want).heap
        chosen: dict[str, Fit] = {}
        while heap and len(chosen) < want.nodes:
            fit = heappop(heap)
            if self._valid(fit, want):
                chosen[fit.node] = fit
        if len(chosen) < want.nodes:
            return None  # free space only shrinks, so nobody asks for this want again
        self._touched.extend(chosen)
        return list(chosen.values())

    def _candidates_of(self, want: Want) -> Candidates:
        known = self._candidates.get(want)
        if known is None:
            heap = [spot.fit(want) for spot in self.could(want) if spot.holds(want)]
            heapify(heap)
            known = Candidates(heap, seen=len(self._touched))
            self._candidates[want] = known
        for node in self._touched[known.seen :]:
            heappush(known.heap, self.spots[node].fit(want))
        known.seen = len(self._touched)
        return known

    def _valid(self, fit: Fit, want: Want) -> bool:
        """Tell whether a candidate still fits and is allowed.

        One that was used since stands in the heap twice: a node that is fuller fits
        better, so the newer entry always comes first.
        """
        spot = self.spots[fit.node]
        return (
            not spot.reserved & kinds_of(want)
            and spot.holds(want)
            and spot.room.node not in want.owing
        )


def floor_of(rooms: Mapping[str, Room]) -> Floor:
    """Lay out the nodes in service."""
    return Floor(
        {
            room.node: Spot(
                room, room.devices_free, room.cpus_free, room.memory_free_bytes
            )
            for room in rooms.values()
            if not room.trouble
        }
    )
