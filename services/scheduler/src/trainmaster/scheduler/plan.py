"""Which waiting jobs start now, where, who stops for it, and why not the others.

Order is the class, then fair share, then who came first. A gang is placed whole or not
at all. A blocked job keeps the nodes where it can start soonest: nothing behind it
takes them unless it is over by then. A job that could not start even if nothing ran
keeps nothing and holds nobody up.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain

from trainmaster.core.ids import JobKey
from trainmaster.scheduler import gang, preempt, reasons
from trainmaster.scheduler.backfill import Start, earliest, reserve
from trainmaster.scheduler.books import Books
from trainmaster.scheduler.floor import Floor, Keep
from trainmaster.scheduler.gates import Gatekeeper, opens_at
from trainmaster.scheduler.layout import enters, floor_of
from trainmaster.scheduler.order import Turns, aged
from trainmaster.scheduler.reasons import Diagnosis, Verdict
from trainmaster.scheduler.result import Placement, Plan, Preemption, Rest
from trainmaster.scheduler.rights import brake
from trainmaster.scheduler.running import Releases, terminating
from trainmaster.scheduler.settings import (
    PLACEMENTS_MAX,
    PREEMPTORS_MAX,
    RESERVATIONS_MAX,
)
from trainmaster.scheduler.snapshot import Line, Request, Snapshot, Want
from trainmaster.scheduler.words import Reason


def plan(snapshot: Snapshot) -> Plan:
    """Place jobs in order, all of a job or none of it, and say why not."""
    planning = _Planning(snapshot, floor_of(snapshot), Books(snapshot))
    planning.admit()
    planning.place()
    return planning.result()


def starts(snapshot: Snapshot, key: JobKey) -> bool:
    """Plan only until it is clear whether one job is placed."""
    planning = _Planning(snapshot, floor_of(snapshot), Books(snapshot))
    planning.admit()
    return planning.place(key)


@dataclass(frozen=True, slots=True)
class _Short:
    """Why the front of a line may not hold more."""

    quota: tuple[Reason, ...] = ()
    ahead: Request | None = None


@dataclass(slots=True)
class _Planning:
    """One plan in the making. A line is looked at only at its front."""

    snapshot: Snapshot
    floor: Floor
    books: Books
    gated: list[tuple[Line, tuple[Reason, ...]]] = field(
        default_factory=list[tuple[Line, tuple[Reason, ...]]]
    )
    verdicts: dict[Want, Verdict] = field(default_factory=dict[Want, Verdict])
    short: dict[int, _Short] = field(default_factory=dict[int, _Short])
    shut: dict[str, Request] = field(default_factory=dict[str, Request])
    reserved: dict[str, Request] = field(default_factory=dict[str, Request])
    placements: list[Placement] = field(default_factory=list[Placement])
    preemptions: list[Preemption] = field(default_factory=list[Preemption])
    preemptors: int = 0
    turns: Turns = field(init=False)
    releases: Releases = field(init=False)
    diagnosis: Diagnosis = field(init=False)

    def __post_init__(self) -> None:
        self.turns = Turns(self.books, self.snapshot.claims)
        self.releases = Releases(self.snapshot)
        self.diagnosis = Diagnosis(self.snapshot, self.floor, self.reserved)

    def admit(self) -> None:
        """Let lines take part, or set them aside behind their gates."""
        open_: list[Line] = []
        keeper = Gatekeeper(self.snapshot)
        for line in self.snapshot.lines:
            found = keeper.asks(line.head)
            if found:
                self.gated.append((line, found))
            else:
                open_.append(line)
        self.turns.admit(open_)

    def place(self, until: JobKey | None = None) -> bool:
        """Take the foremost request of all lines, again and again, or until one's turn.

        Gives whether that one was placed.
        """
        for number, request in self.turns:
            if self.full:
                self.turns.put_back(number)
                break
            placed = self._placed(number, request)
            if placed:
                self.turns.go_on(number)
            if request.key == until:
                return placed
        return False

    @property
    def full(self) -> bool:
        """One batch of the log holds no more."""
        return self._room_left <= 0

    @property
    def _room_left(self) -> int:
        return PLACEMENTS_MAX - len(self.placements) - len(self.preemptions)

    def _want(self, request: Request) -> Want:
        if not self.snapshot.settings.reservations:
            return request.want
        allowed = enters(self.snapshot, request.key.team, request.priority)
        return request.want._replace(enters=allowed)

    def _placed(self, number: int, request: Request) -> bool:
        want, team = self._want(request), request.key.team
        if want.charge and self._shut(number, team):
            return False
        short = self.books.short(team, request.user, want)
        if short:
            told = tuple(reasons.quota(each, want) for each in short)
            self.short[number] = _Short(quota=told)
            if all(each.what == "team" and each.limit >= want.charge for each in short):
                self._shut_behind(request, tuple(each.whose for each in short))
                if not self._claim(request, want):
                    self._keep_room(request, want)
            return False
        if want in self.verdicts:
            return False
        members = gang.place(self.floor, request, want)
        if members is None:
            self._block(request, want)
            return False
        self.books.charge(team, request.user, want)
        self.placements.append(Placement(request=request, members=members))
        return True

    def _shut(self, number: int, team: str) -> bool:
        """Nobody of a team takes the quota that one before them waits for."""
        ahead = next(
            (self.shut[t] for t in self.books.path(team) if t in self.shut), None
        )
        if ahead is not None:
            self.short[number] = _Short(ahead=ahead)
        return ahead is not None

    def _shut_behind(self, request: Request, short: tuple[str, ...]) -> None:
        """Keep quota for a blocked job; of the teams above only for who is due."""
        due = (
            aged(request, self.snapshot.now) or request.key.job in self.snapshot.claims
        )
        for team in {request.key.team, *(short if due else ())}:
            self.shut.setdefault(team, request)

    def _block(self, request: Request, want: Want) -> None:
        verdict = self.diagnosis.of(request, want)
        keeps = verdict.reserves and len(self.reserved) < RESERVATIONS_MAX
        if keeps and not self._claim(request, want):
            verdict = self._reserve(request, want, verdict)
        self.verdicts[want] = verdict

    def _reserve(self, request: Request, want: Want, verdict: Verdict) -> Verdict:
        start = earliest(self.floor, self.releases, want)
        if start is None:
            return verdict
        reserve(self.floor, request.key.job, want, start)
        self.reserved[request.key.job] = request
        if start.at is not None or request.key.job in self.snapshot.claims:
            self.books.charge(request.key.team, request.user, want)
        return _with_start(verdict, start)

    def _keep_room(self, request: Request, want: Want) -> None:
        """Keep what others were stopped for, while their quota is not back yet."""
        if request.key.job in self.snapshot.claims:
            start = earliest(self.floor, self.releases, want)
            if start is not None:
                reserve(self.floor, request.key.job, want, start)
                self.reserved[request.key.job] = request

    def _promise(self, request: Request, want: Want) -> None:
        self.reserved[request.key.job] = request
        self.books.charge(request.key.team, request.user, want)

    def _claim(self, request: Request, want: Want) -> bool:
        """Stop others for a blocked job, if it may and then starts."""
        if self.preemptors >= PREEMPTORS_MAX:
            return False
        scene = preempt.Scene(
            snapshot=self.snapshot,
            floor=self.floor,
            books=self.books,
            releases=self.releases,
            doomed=frozenset(p.victim.key for p in self.preemptions),
        )
        if not preempt.has_rights(scene, request):
            return False
        self.preemptors += 1
        raid = preempt.find(scene, request, want)
        if raid is None or self._room_left < len(raid.victims):
            return False
        self.preemptions += [
            Preemption(victim=v, request=request) for v in raid.victims
        ]
        devices = want.accelerators
        for node in raid.nodes:
            self.floor.keep(node, Keep(request.key.job, want.kinds, max(devices, 1)))
        self._promise(request, want)
        return True

    def result(self) -> Plan:
        """Sum up."""
        return Plan(
            pool=self.snapshot.pool,
            placements=tuple(self.placements),
            preemptions=tuple(self.preemptions),
            rests=(*self._blocked(), *self._aside()),
            full=self.full and bool(self.turns),
            changes_at=self._changes_at(),
        )

    def _blocked(self) -> Iterator[Rest]:
        for number, line in enumerate(self.turns.lines):
            left, short = self.turns.left(number), self.short.get(number, _Short())
            if left:
                yield Rest(
                    requests=left,
                    quota=short.quota,
                    ahead=short.ahead,
                    verdict=self.verdicts.get(self._want(line.head)),
                )

    def _aside(self) -> Iterator[Rest]:
        """Behind a gate a job still learns what else would keep it waiting."""
        for line, found in self.gated:
            want = self._want(line.head)
            short = self.books.short(line.head.key.team, line.head.user, want)
            verdict = self.verdicts.get(want)
            if verdict is None:
                verdict = self.diagnosis.of(line.head, want)
                self.verdicts[want] = verdict
            yield Rest(
                requests=line.requests,
                gates=found,
                quota=tuple(reasons.quota(each, want) for each in short),
                verdict=verdict,
            )

    def _changes_at(self) -> datetime | None:
        now, settings = self.snapshot.now, self.snapshot.settings
        gated = (
            at for line, _ in self.gated for at in opens_at(line.head, self.snapshot)
        )
        spans = (at for s in settings.spans for at in (s.starts_at, s.ends_at) if at)
        holds = (hold.until for hold in self.snapshot.holds.values())
        found = chain(gated, spans, holds, self._preemption_changes())
        return min((at for at in found if at > now), default=None)

    def _preemption_changes(self) -> Iterator[datetime]:
        """Say when who is on its way out is given up, or a brake is off."""
        classes = self.snapshot.settings
        if not any(
            classes.class_of(r.priority).preempts for r in self.reserved.values()
        ):
            return
        for job in self.snapshot.jobs.values():
            if job.pool == self.snapshot.pool and job.unreclaimed:
                due = terminating(job, self.snapshot.now)
                yield due if due is not None else brake(job, self.snapshot)


def _with_start(verdict: Verdict, start: Start) -> Verdict:
    return Verdict(
        head=verdict.head,
        reasons=verdict.reasons,
        ahead=verdict.ahead,
        reserves=True,
        start=start,
    )
