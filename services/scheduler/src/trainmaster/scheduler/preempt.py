"""Which jobs must stop so that a blocked one starts: whole gangs, the least lost work.

Nobody is stopped unless the blocked job then starts, and nobody while those that are
already on their way out make room enough. Found greedily node by node, then everyone
who need not go stays.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from trainmaster.core.ids import JobKey
from trainmaster.core.record import Job
from trainmaster.scheduler.books import Books, Short
from trainmaster.scheduler.floor import Floor
from trainmaster.scheduler.rights import (
    Rights,
    going,
    lost_seconds,
    may_reclaim,
    may_stop,
    rights_of,
)
from trainmaster.scheduler.running import Release, Releases
from trainmaster.scheduler.settings import VICTIMS_MAX
from trainmaster.scheduler.snapshot import Request, Snapshot, Want


@dataclass(frozen=True, slots=True, kw_only=True)
class Raid:
    """Who stops for a request, and the nodes it then gets."""

    victims: tuple[Job, ...]
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """All that a search looks at."""

    snapshot: Snapshot
    floor: Floor
    books: Books
    releases: Releases
    doomed: frozenset[JobKey] = frozenset()


def has_rights(scene: Scene, request: Request) -> bool:
    """Tell whether a request may stop anybody at all."""
    return not rights_of(request, scene.snapshot, scene.books).none


def find(scene: Scene, request: Request, want: Want) -> Raid | None:
    """Find who stops for a request; None when nobody does."""
    rights = rights_of(request, scene.snapshot, scene.books)
    if rights.none or want.nodes < 1:
        return None
    search = _Search(scene, rights, want)
    if search.waits() or not search.widen() or not search.pay():
        return None
    search.prune()
    victims = tuple(scene.snapshot.jobs[key] for key in sorted(search.chosen))
    if not victims or len(victims) > VICTIMS_MAX:
        return None
    return Raid(victims=victims, nodes=tuple(search.nodes()[: want.nodes]))


@dataclass(slots=True)
class _Search:
    """One search; `chosen` are those who stop, by what they lose."""

    scene: Scene
    rights: Rights
    want: Want
    chosen: dict[JobKey, float] = field(default_factory=dict[JobKey, float])
    _groups: dict[object, list[str]] = field(default_factory=dict[object, list[str]])
    _costs: dict[JobKey, float | None] = field(
        default_factory=dict[JobKey, float | None]
    )
    _group: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        floor, want = self.scene.floor, self.want
        level = want.topology.removesuffix("!") if want.topology.endswith("!") else ""
        for face, names in floor.names.items():
            if not want.suits(face.look) or not floor.admits(face, want):
                continue
            for node in names:
                domain = floor.spots[node].room.frame.domain(level) if level else ""
                if node not in want.owing and (domain or not level):
                    key = (face.look.likeness, domain) if want.nodes > 1 else None
                    self._groups.setdefault(key, []).append(node)

    # -------------------------------------------------------------- what would fit

    def fits(self, node: str, gone: Iterable[JobKey]) -> bool:
        """Tell whether a member fits once these and all that are going are gone."""
        face = self.scene.floor.spots[node].face
        free = self.scene.floor.spared(face, self.want) if face.keeps else face.devices
        if free < 0:
            return False
        cpus, memory, gone = face.cpus, face.memory_bytes, set(gone)
        for release in self.scene.releases.on(node):
            if release.job in gone or self._goes(release):
                free += release.devices
                cpus += release.cpus
                memory += release.memory_bytes
        want = self.want
        enough = free >= want.accelerators and memory >= want.memory_bytes
        return enough and (want.accelerators > 0 or cpus >= want.cpus)

    def _goes(self, release: Release) -> bool:
        job = self.scene.snapshot.jobs[release.job]
        return going(job, self.scene.snapshot.now)

    def nodes(self) -> list[str]:
        """List the nodes of the group that would fit now."""
        return sorted(node for node in self._group if self.fits(node, self.chosen))

    def _short(self) -> tuple[Short, ...]:
        """Name the limits that would still be broken."""
        books, key = self.scene.books, self.rights.request.key
        short = books.short(key.team, self.rights.request.user, self.want)
        return tuple(each for each in short if self._over(each) > 0)

    def _over(self, short: Short) -> int:
        back = sum(self._charge(job, short) for job in self._leaving())
        return short.held - back + self.want.charge - short.limit

    def _charge(self, job: Job, short: Short) -> int:
        if short.what == "job":
            return 0
        if short.what == "user":
            counts = (job.key.team, job.by) == (
                self.rights.request.key.team,
                self.rights.request.user,
            )
        else:
            counts = short.whose in self.scene.books.path(job.key.team)
        slots = job.unreclaimed.values() if counts else ()
        return sum(len(s.accelerators) for members in slots for s in members)

    def _leaving(self) -> Iterator[Job]:
        snapshot = self.scene.snapshot
        for job in snapshot.jobs.values():
            here = job.pool == snapshot.pool and job.unreclaimed
            if here and (job.key in self.chosen or going(job, snapshot.now)):
                yield job

    def waits(self) -> bool:
        """Tell whether those on their way out will do."""
        if self._short():
            return False
        need = self.want.nodes
        return any(
            sum(self.fits(node, ()) for node in nodes) >= need
            for nodes in self._groups.values()
        )

    # ---------------------------------------------------------------- who would go

    def _cost(self, key: JobKey) -> float | None:
        """Say what stopping a job loses; None when it may not be stopped."""
        if key not in self._costs:
            scene = self.scene
            job = scene.snapshot.jobs[key]
            may = key not in scene.doomed and may_stop(
                self.rights, job, scene.snapshot, scene.books
            )
            self._costs[key] = lost_seconds(job, scene.snapshot) if may else None
        return self._costs[key]

    def widen(self) -> bool:
        """Choose who makes room on enough nodes, where the least is lost."""
        best: tuple[float, list[str], dict[JobKey, float]] | None = None
        for nodes in self._groups.values():
            chosen = self._clear(nodes)
            if chosen is None:
                continue
            cost = sum(chosen.values())
            if best is None or (cost, sorted(nodes)) < (best[0], sorted(best[1])):
                best = cost, nodes, chosen
        if best is None:
            return False
        _, self._group, self.chosen = best
        return True

    def _clear(self, nodes: list[str]) -> dict[JobKey, float] | None:
        """Clear the cheapest nodes of a group; a gang that goes is paid once."""
        chosen: dict[JobKey, float] = {}
        heap = [(price[0], node) for node in nodes if (price := self._price(node, {}))]
        heapify(heap)
        cleared: set[str] = set()
        while heap and len(cleared) < self.want.nodes:
            old, node = heappop(heap)
            price = self._price(node, chosen)
            if node in cleared or price is None:
                continue
            if price[0] > old:
                heappush(heap, (price[0], node))
                continue
            cleared.add(node)
            chosen.update(price[1])
            for other in self._shared(price[1]):
                again = self._price(other, chosen)
                if again is not None and other not in cleared:
                    heappush(heap, (again[0], other))
        return chosen if len(cleared) >= self.want.nodes else None

    def _shared(self, gone: Iterable[JobKey]) -> set[str]:
        jobs = (self.scene.snapshot.jobs[key] for key in gone)
        nodes = {s.node for job in jobs for m in job.unreclaimed.values() for s in m}
        return nodes & set(self.scene.floor.spots)

    def _price(
        self, node: str, chosen: dict[JobKey, float]
    ) -> tuple[float, dict[JobKey, float]] | None:
        """Say who else has to go from a node for a member to fit, and what is lost."""
        if self.fits(node, chosen):
            return 0.0, {}
        gone: dict[JobKey, float] = {}
        tenants = {r.job for r in self.scene.releases.on(node)} - chosen.keys()
        costs = [
            (cost, key) for key in tenants if (cost := self._cost(key)) is not None
        ]
        for cost, key in sorted(costs):
            gone[key] = cost
            if self.fits(node, chosen.keys() | gone.keys()):
                break
        else:
            return None
        for key in sorted(gone, key=lambda k: (-gone[k], k)):
            if self.fits(node, chosen.keys() | gone.keys() - {key}):
                del gone[key]
        return sum(gone.values()), gone

    def pay(self) -> bool:
        """Choose who gives quota back, the least lost first."""
        while short := self._short():
            found = min(self._payers(short[0]), default=None)
            if found is None or len(self.chosen) >= VICTIMS_MAX:
                return False
            self.chosen[found[1]] = found[0]
        return True

    def _payers(self, short: Short) -> Iterator[tuple[float, JobKey]]:
        for key, job in self.scene.snapshot.jobs.items():
            if (
                key in self.chosen
                or not job.unreclaimed
                or not self._charge(job, short)
            ):
                continue
            cost = self._cost(key)
            if cost is not None and self._borrows(job):
                yield cost, key

    def _borrows(self, job: Job) -> bool:
        """Do not go on with a team that has given back all it had borrowed."""
        if self.rights.preempts and job.priority < self.rights.request.priority:
            return True
        jobs = self.scene.snapshot.jobs
        mine = (jobs[k] for k in self.chosen if k.team == job.key.team)
        back = sum(len(s.accelerators) for j in mine for s in j.members)
        return may_reclaim(self.rights, job, self.scene.books, back)

    def prune(self) -> None:
        """Let everyone stay who need not go, the dearest first."""
        for key, cost in sorted(self.chosen.items(), key=lambda kv: (-kv[1], kv[0])):
            del self.chosen[key]
            if self._short() or len(self.nodes()) < self.want.nodes:
                self.chosen[key] = cost
