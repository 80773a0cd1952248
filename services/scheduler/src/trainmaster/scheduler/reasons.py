"""Why a job waits: stable codes, sentences with numbers, and sentences that stay.

The foremost jobs are told what is free now and who is ahead. Numbers move with every
placement, so those further behind are told only what they need: ten thousand waiting
jobs are not told anew because one in front of them has moved.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from trainmaster.scheduler import words
from trainmaster.scheduler.backfill import Start, owners
from trainmaster.scheduler.books import Short
from trainmaster.scheduler.floor import Face, Floor
from trainmaster.scheduler.labels import Look
from trainmaster.scheduler.settings import EXPLAINED_MAX, NODES_NAMED_MAX
from trainmaster.scheduler.snapshot import Request, Snapshot, Want
from trainmaster.scheduler.words import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Why nobody with one want is placed by this plan.

    `head` is the first of them. `ahead` is who reserved nodes that it could use.
    `reserves`: it could start here once others are gone, so nothing overtakes it.
    """

    head: Request
    reasons: tuple[Reason, ...]
    ahead: Request | None = None
    reserves: bool = False
    start: Start | None = None

    def before(self, request: Request) -> Request | None:
        """Name who stands before a request with this want."""
        if self.ahead is None and self.reserves and request.key != self.head.key:
            return self.head
        return self.ahead


@dataclass(slots=True)
class Diagnosis:
    """Says why wants do not fit on what a plan has left."""

    snapshot: Snapshot
    floor: Floor
    reserved: Mapping[str, Request]
    _looks: Counter[Look] = field(default_factory=Counter[Look])

    def of(self, request: Request, want: Want) -> Verdict:
        """Say all that keeps a want from being placed on what is free now."""
        if not self._looks:
            rooms = self.snapshot.rooms.values()
            self._looks.update(room.frame.look for room in rooms)
        suitable = sum(n for look, n in self._looks.items() if want.suits(look))
        if want.nodes < 1 or suitable < want.nodes:
            return Verdict(head=request, reasons=(self._never(want, suitable),))
        usable = list(self._usable(want))
        count = sum(count for _, count in usable)
        free = [(face, count) for face, count in usable if _free(face, want)]
        found = (
            *self._node_state(want, suitable),
            *self._proof(want, count),
            *_capacity(want, free, usable),
            *self._windows(want, free),
            *self._kept(want, free),
            *self._facts(want, free),
            *self._topology(want, free),
        )
        return Verdict(
            head=request,
            reasons=found,
            ahead=self._ahead(want, usable),
            reserves=count >= want.nodes,
        )

    def _usable(self, want: Want) -> Iterator[tuple[Face, int]]:
        for face, names in self.floor.names.items():
            if names and want.suits(face.look):
                owing = sum(n in want.owing for n in names) if want.owing else 0
                yield face, len(names) - owing

    def _never(self, want: Want, suitable: int) -> Reason:
        if want.nodes < 1:
            now = "the job asks for what no node can give"
            return Reason(code=words.NEVER_FITS, now=now)
        if not self._looks:
            return Reason(code=words.NO_NODES, now="the pool has no registered node")
        untyped = want._replace(types=())
        others = sum(n for look, n in self._looks.items() if untyped.suits(look))
        if others >= want.nodes:
            return Reason(
                code=words.NODE_FACTS,
                now=f"needs {want.nodes} nodes with {' or '.join(want.types)}; "
                f"{suitable} of {others} fitting nodes have it",
                numbers={"needed": want.nodes, "matching": suitable, "nodes": others},
            )
        most = max(self._looks, key=lambda x: (x.accelerators, x.cpus, x.memory_bytes))
        return Reason(
            code=words.NEVER_FITS,
            now=f"needs {words.need(want)}; the pool has {suitable} such "
            f"(largest: {words.offer(most)})",
            numbers={"needed": want.nodes, "nodes": suitable},
        )

    def _node_state(self, want: Want, suitable: int) -> Iterator[Reason]:
        away = sum(n for x, n in self._looks.items() if x.trouble and want.suits(x))
        if suitable - away >= want.nodes:
            return
        named = sorted(
            f"{room.frame.node} {room.frame.look.trouble}"
            for room in self.snapshot.rooms.values()
            if room.frame.look.trouble and want.suits(room.frame.look)
        )[:NODES_NAMED_MAX]
        yield Reason(
            code=words.NODE_STATE,
            now=f"needs {want.nodes} of {suitable} fitting nodes, "
            f"but these are away: {words.listed(named, away)}",
            numbers={"needed": want.nodes, "nodes": suitable, "away": away},
        )

    def _proof(self, want: Want, usable: int) -> Iterator[Reason]:
        spots = self.floor.spots
        owing = [n for n in want.owing if n in spots and want.suits(spots[n].face.look)]
        if not owing or usable >= want.nodes or usable + len(owing) < want.nodes:
            return
        named = words.listed(owing[:NODES_NAMED_MAX], len(owing))
        now = f"an older attempt of this job may still run on {named}"
        yield Reason(code=words.PROOF, now=now)

    def _windows(self, want: Want, free: "_Faces") -> Iterator[Reason]:
        shut = [
            (face.closes_at, count)
            for face, count in free
            if face.closes_at is not None and not self.floor.admits(face, want)
        ]
        count = sum(n for _, n in shut)
        if shut and sum(n for _, n in free) - count < want.nodes:
            at = min(at for at, _ in shut)
            starts = f"starts {words.time(at)}" if at > self.floor.now else "is open"
            yield Reason(
                code=words.WINDOW,
                now=f"{count} free nodes are in a maintenance window or reservation "
                f"that {starts}; a job may enter only if its time limit ends before",
                numbers={"nodes": count},
            )

    def _kept(self, want: Want, free: "_Faces") -> Iterator[Reason]:
        kept = [
            (face, count)
            for face, count in free
            if (face.kept_by and face.kept_by not in want.enters)
            or (face.spare and not want.spares)
            or any(o not in self.reserved for o in self._strangers(face, want))
        ]
        count = sum(n for _, n in kept)
        if not count or sum(n for _, n in free) - count >= want.nodes:
            return
        for_whom = sorted({self._for_whom(face) for face, _ in kept})
        named = words.listed(for_whom[:NODES_NAMED_MAX], len(for_whom))
        yield Reason(
            code=words.RESERVED,
            now=f"{count} free nodes are kept for {named}",
            numbers={"nodes": count},
        )

    def _strangers(self, face: Face, want: Want) -> Iterator[str]:
        return (owner for owner in owners(face, want) if owner != want.owner)

    def _for_whom(self, face: Face) -> str:
        if face.kept_by:
            return f"reservation {face.kept_by}"
        if face.spare:
            return "jobs that lose a node"
        return next((f"job {k.owner}" for k in face.keeps), "others")

    def _facts(self, want: Want, free: "_Faces") -> Iterator[Reason]:
        alike: Counter[object] = Counter()
        for face, count in free:
            alike[face.look.likeness] += count
        most = max(alike.values(), default=0)
        if most < want.nodes <= sum(alike.values()):
            yield Reason(
                code=words.NODE_FACTS,
                now=f"needs {want.nodes} nodes with the same accelerator, driver and "
                f"image; at most {most} of the free ones are alike",
                numbers={"needed": want.nodes, "alike": most},
            )

    def _topology(self, want: Want, free: "_Faces") -> Iterator[Reason]:
        level = want.topology.removesuffix("!")
        if not want.topology.endswith("!"):
            return
        domains: Counter[str] = Counter()
        for face, _ in free:
            spots = (self.floor.spots[name] for name in self.floor.names[face])
            domains.update(spot.room.frame.domain(level) for spot in spots)
        del domains[""]
        most = max(domains.values(), default=0)
        if most < want.nodes <= sum(count for _, count in free):
            yield Reason(
                code=words.TOPOLOGY,
                now=f"needs {want.nodes} free nodes in one {level}; "
                f"the best of {len(domains)} has {most}",
                numbers={"needed": want.nodes, "best": most},
            )

    def _ahead(self, want: Want, usable: "_Faces") -> Request | None:
        found = (
            self.reserved[owner]
            for face, _ in usable
            for owner in self._strangers(face, want)
            if owner in self.reserved
        )
        return min(found, key=lambda request: request.place, default=None)


_Faces = Sequence[tuple[Face, int]]


def _free(face: Face, want: Want) -> bool:
    """Tell whether a member would fit if nothing was kept from it."""
    return (
        face.devices >= want.accelerators
        and face.memory_bytes >= want.memory_bytes
        and (want.accelerators > 0 or face.cpus >= want.cpus)
    )


def _capacity(want: Want, free: _Faces, usable: _Faces) -> Iterator[Reason]:
    have, most = sum(n for _, n in free), sum(n for _, n in usable)
    if have >= min(want.nodes, most):
        return
    yield Reason(
        code=words.CAPACITY,
        now=f"needs {words.need(want)} free, {have} of {most} are",
        always=f"needs {words.need(want)} free",
        numbers={"needed": want.nodes, "free": have, "nodes": most},
    )
    shape: Counter[int] = Counter()
    for face, count in usable:
        shape[face.devices] += count
    total = sum(devices * count for devices, count in shape.items() if devices > 0)
    if want.charge and total >= want.charge:
        parts = [f"{n}x{d}" for d, n in sorted(shape.items(), reverse=True) if d > 0]
        yield Reason(
            code=words.FRAGMENTED,
            now=f"{total} accelerators are free, but as {', '.join(parts)}",
            always="enough accelerators may be free, but not together",
            numbers={"free": total, "needed": want.charge},
        )


def lacks(want: Want) -> Reason:
    """Say what has to become free, however much is now."""
    return Reason(code=words.CAPACITY, now=f"needs {words.need(want)} free")


def quota(short: Short, want: Want) -> Reason:
    """Say which limit a start would break."""
    asks = f"needs {want.charge} accelerators; "
    match short.what:
        case "job":
            told = f"a job of team {short.whose} may have {short.limit}"
        case "user":
            told = f"user {short.whose} holds {short.held} of {short.limit}"
        case _:
            told = f"team {short.whose} holds {short.held} of {short.limit}"
    return Reason(
        code=words.QUOTA_TEAM,
        now=asks + told,
        always=f"{asks}the limit of {short.what} {short.whose} is {short.limit}",
        numbers={"needed": want.charge, "held": short.held, "limit": short.limit},
    )


def priority(ahead: Request) -> Reason:
    """Say who is placed first."""
    since = words.time(ahead.place.submitted_at)
    return Reason(
        code=words.PRIORITY,
        now=f"job {ahead.key.job} is ahead: priority {ahead.priority}, "
        f"submitted {since}",
        always=f"at least {EXPLAINED_MAX} jobs are ahead",
    )


def next_plan() -> Reason:
    """Say that one plan holds only so much."""
    now = "this plan is full, the next follows at once"
    return Reason(code=words.NEXT_PLAN, now=now)
