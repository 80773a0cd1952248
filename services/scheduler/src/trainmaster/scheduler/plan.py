"""Which waiting jobs start now, where, and why not the others. Pure.

Order is priority, then who came first, then id. A gang is placed whole or not at all.
A blocked job keeps what it could use: nothing behind it takes that, others go on. A job
that could not start even if nothing ran keeps nothing and holds nobody up.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from heapq import heapify, heappop, heappush, merge
from itertools import chain, islice

from trainmaster.core.events import AttemptPlaced
from trainmaster.core.ids import JobKey
from trainmaster.core.messages import WaitReason, WaitReasons
from trainmaster.core.values import MemberSlot
from trainmaster.scheduler import reasons
from trainmaster.scheduler.floor import Floor, floor_of
from trainmaster.scheduler.reasons import Reason, Verdict
from trainmaster.scheduler.settings import EXPLAINED_MAX, PLACEMENTS_MAX
from trainmaster.scheduler.snapshot import Line, Place, Request, Snapshot, Want


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """One job that starts: all slots of its next attempt."""

    request: Request
    members: tuple[MemberSlot, ...]

    def event(self, pool: str) -> AttemptPlaced:
        """Say it on the log."""
        return AttemptPlaced(
            attempt=self.request.attempt, pool=pool, members=self.members
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """Requests of one line that are not placed, and why."""

    requests: tuple[Request, ...]
    gates: tuple[Reason, ...] = ()
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What one pool does now. `full`: more could be placed by the next plan at once.

    `changes_at` is when time alone may change it.
    """

    pool: str
    placements: tuple[Placement, ...] = ()
    rests: tuple[Rest, ...] = ()
    full: bool = False
    changes_at: datetime | None = None

    def waiting(self) -> Mapping[JobKey, WaitReasons]:
        """Give all reasons of every job that is not placed."""
        found: dict[JobKey, WaitReasons] = {}
        for rest in self.rests:
            keys = (request.key for request in rest.requests)
            found.update(dict.fromkeys(keys, _steady(rest)))
        found.update(self._foremost())
        return found

    def _foremost(self) -> Iterator[tuple[JobKey, WaitReasons]]:
        """Tell the first in line who is ahead and what is free at this moment."""
        in_line = (rest for rest in self.rests if not rest.gates)
        ordered = merge(*map(_placed_in_line, in_line), key=_place)
        for position, (request, verdict) in enumerate(
            islice(ordered, EXPLAINED_MAX), start=1
        ):
            found = verdict.reasons if verdict else (reasons.next_plan(),)
            ahead = verdict.before(request) if verdict else None
            if ahead is not None:
                found = (*found, reasons.priority(ahead))
            yield (
                request.key,
                WaitReasons(reasons=tuple(r.moving for r in found), position=position),
            )


_InLine = tuple[Request, Verdict | None]


def _placed_in_line(rest: Rest) -> list[_InLine]:
    return [(request, rest.verdict) for request in rest.requests[:EXPLAINED_MAX]]


def _place(item: _InLine) -> Place:
    return item[0].place


def _steady(rest: Rest) -> WaitReasons:
    """Tell those further behind what stays; equal texts are one object."""
    found = [*rest.gates, *(rest.verdict.reasons if rest.verdict else ())]
    if rest.verdict and not rest.gates and rest.verdict.before(rest.requests[-1]):
        found.append(reasons.priority(rest.verdict.head))
    if not found:
        found.append(reasons.next_plan())
    return _shared(tuple(reason.steady for reason in found))


@lru_cache(maxsize=1024)
def _shared(found: tuple[WaitReason, ...]) -> WaitReasons:
    return WaitReasons(reasons=found)


# ------------------------------------------------------------------------- planning


def plan(snapshot: Snapshot) -> Plan:
    """Place jobs in order, all of a job or none of it, and say why not."""
    planning = _Planning(snapshot, floor_of(snapshot.rooms))
    for line in snapshot.lines:
        planning.admit(line)
    planning.place()
    return planning.result()


@dataclass(slots=True)
class _Planning:
    """One plan in the making. A line is looked at only at its front."""

    snapshot: Snapshot
    floor: Floor
    gated: list[tuple[Line, tuple[Reason, ...]]] = field(
        default_factory=list[tuple[Line, tuple[Reason, ...]]]
    )
    fronts: list[tuple[Place, int]] = field(default_factory=list[tuple[Place, int]])
    lines: list[Line] = field(default_factory=list[Line])
    reached: list[int] = field(default_factory=list[int])
    verdicts: dict[Want, Verdict] = field(default_factory=dict[Want, Verdict])
    placements: list[Placement] = field(default_factory=list[Placement])

    def admit(self, line: Line) -> None:
        """Let a line take part, or set it aside behind its gate."""
        found = reasons.gates(line.requests[0], self.snapshot)
        if found:
            self.gated.append((line, found))
            return
        self.fronts.append((line.requests[0].place, len(self.lines)))
        self.lines.append(line)
        self.reached.append(0)

    def place(self) -> None:
        """Take the foremost request of all lines, again and again."""
        heapify(self.fronts)
        while self.fronts and not self.full:
            _, number = heappop(self.fronts)
            line, at = self.lines[number], self.reached[number]
            if line.want in self.verdicts or not self._placed(line.requests[at]):
                continue
            self.reached[number] = at + 1
            if at + 1 < len(line.requests):
                heappush(self.fronts, (line.requests[at + 1].place, number))

    @property
    def full(self) -> bool:
        """One batch of the log holds no more."""
        return len(self.placements) >= PLACEMENTS_MAX

    def _placed(self, request: Request) -> bool:
        members = self.floor.take(request)
        if members is not None:
            self.placements.append(Placement(request=request, members=members))
            return True
        verdict = reasons.diagnose(request, self.snapshot.rooms, self.floor)
        self.verdicts[request.want] = verdict
        if verdict.reserves:
            self.floor.reserve(request)
        return False

    def result(self) -> Plan:
        """Sum up."""
        return Plan(
            pool=self.snapshot.pool,
            placements=tuple(self.placements),
            rests=(*self._blocked(), *self._aside()),
            full=self.full and bool(self.fronts),
            changes_at=self._changes_at(),
        )

    def _blocked(self) -> Iterator[Rest]:
        for line, at in zip(self.lines, self.reached, strict=True):
            if at < len(line.requests):
                yield Rest(
                    requests=line.requests[at:], verdict=self.verdicts.get(line.want)
                )

    def _aside(self) -> Iterator[Rest]:
        """Behind a gate a job still learns what else would keep it waiting."""
        for line, found in self.gated:
            verdict = self.verdicts.get(line.want)
            if verdict is None:
                verdict = reasons.diagnose(
                    line.requests[0], self.snapshot.rooms, self.floor
                )
                self.verdicts[line.want] = verdict
            yield Rest(requests=line.requests, gates=found, verdict=verdict)

    def _changes_at(self) -> datetime | None:
        backing_off = (
            line.requests[0].not_before
            for line, _ in self.gated
            if line.requests[0].not_before is not None
        )
        pauses = (until for until in self.snapshot.paused.values() if until is not None)
        return min(
            (at for at in chain(backing_off, pauses) if at > self.snapshot.now),
            default=None,
        )
