"""What the scheduler remembers, and what follows from it: queues, free rooms, reasons.

Only the rows are saved. The desk is derived from them, kept up to date by `fold` and
made anew when there is none, for example after loading.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from trainmaster.core.decision import Changed
from trainmaster.core.envelope import Entry
from trainmaster.core.events import Event
from trainmaster.core.facts import PoolChanged, PoolCreated, TeamPaused
from trainmaster.core.ids import JobKey, NodeKey, PoolKey, TeamKey
from trainmaster.core.jobs import Jobs
from trainmaster.core.messages import WaitReasons
from trainmaster.core.record import Job, JobState
from trainmaster.scheduler.inventory import Inventory
from trainmaster.scheduler.nodes import Node, Pool, Team, node_after
from trainmaster.scheduler.plan import Plan
from trainmaster.scheduler.queue import Queue
from trainmaster.scheduler.snapshot import Snapshot, request_of


@dataclass(slots=True, kw_only=True)
class Planned:
    """The newest plan of a pool, and when its reasons were last told."""

    plan: Plan
    told: bool = False
    told_at: datetime | None = None


@dataclass(slots=True)
class Desk:
    """All that is derived: it may be thrown away at any time."""

    inventory: Inventory = field(default_factory=Inventory)
    queues: dict[str, Queue] = field(default_factory=dict[str, Queue])
    planned: dict[str, Planned] = field(default_factory=dict[str, Planned])
    stale: set[str] = field(default_factory=set[str])
    waiting: dict[JobKey, WaitReasons] = field(
        default_factory=dict[JobKey, WaitReasons]
    )
    revised: set[JobKey] = field(default_factory=set[JobKey])

    def move(self, before: Job | None, after: Job) -> None:
        """Follow one job."""
        self._recharge(before, after)
        if before is not None and before.state is JobState.QUEUED:
            self.queues[before.pool].remove(before.key)
            self.stale.add(before.pool)
        if after.state is JobState.QUEUED:
            self.queues.setdefault(after.pool, Queue()).add(request_of(after))
            self.stale.add(after.pool)
        elif self.waiting.pop(after.key, None) is not None:
            self.revised.add(after.key)

    def _recharge(self, before: Job | None, after: Job) -> None:
        if before is not None:
            if before.unreclaimed is after.unreclaimed and before.pool == after.pool:
                return
            self.inventory.release(before)
            self.stale.add(before.pool)
        self.inventory.charge(after)
        self.stale.add(after.pool)

    def touch(self, key: NodeKey) -> None:
        """Follow one node."""
        self.inventory.touch(key)
        self.stale.add(key.pool)

    def tell(self, plan: Plan) -> None:
        """Take over a plan's reasons and note whose have changed."""
        for key, reasons in plan.waiting().items():
            known = self.waiting.get(key)
            if reasons is not known and reasons != known:
                self.waiting[key] = reasons
                self.revised.add(key)

    def take_revised(self) -> set[JobKey]:
        """Hand over whose reasons have changed since the last time."""
        revised, self.revised = self.revised, set()
        return revised


@dataclass(slots=True)
class State:
    """Rows, and the desk."""

    jobs: Jobs = field(default_factory=Jobs)
    nodes: dict[NodeKey, Node] = field(default_factory=dict[NodeKey, Node])
    teams: dict[TeamKey, Team] = field(default_factory=dict[TeamKey, Team])
    pools: dict[PoolKey, Pool] = field(default_factory=dict[PoolKey, Pool])
    _desk: Desk | None = None

    @property
    def desk(self) -> Desk:
        """Give what is derived, made from the rows when there is none yet."""
        if self._desk is None:
            self._desk = Desk()
            for job in self.jobs.values():
                self._desk.move(None, job)
            for key in self.nodes:
                self._desk.touch(key)
        return self._desk

    def snapshot(self, pool: str, now: datetime) -> Snapshot:
        """Freeze all that a plan of one pool depends on."""
        return Snapshot(
            pool=pool,
            now=now,
            rooms=self.desk.inventory.rooms(pool, self.nodes),
            lines=self.desk.queues[pool].lines(),
            paused={
                key.team: team.until
                for key, team in self.teams.items()
                if team.paused and (team.until is None or team.until > now)
            },
        )


def fold(state: State, entry: Entry) -> Iterable[Changed]:
    """Take one event in and name the rows it touched."""
    match entry.key:
        case JobKey() as key:
            yield from _fold_job(state, key, entry)
        case NodeKey() as key:
            state.desk.touch(key)
            state.nodes[key] = node_after(state.nodes.get(key, Node()), entry.event)
            yield "node", key
        case TeamKey() as key:
            yield from _fold_team(state, key, entry.event)
        case PoolKey() as key:
            yield from _fold_pool(state, key, entry.event)
        case _:
            pass  # a plan's marker only moves the head of its chain


def _fold_job(state: State, key: JobKey, entry: Entry) -> Iterable[Changed]:
    desk, before = state.desk, state.jobs.get(key)
    outcome = state.jobs.fold(entry)
    if isinstance(outcome, Job):
        desk.move(before, outcome)
        yield "job", key


def _fold_team(state: State, key: TeamKey, event: Event) -> Iterable[Changed]:
    if isinstance(event, TeamPaused):
        state.teams[key] = Team(paused=event.paused, until=event.until)
        state.desk.stale.update(state.desk.queues)
        yield "team", key


def _fold_pool(state: State, key: PoolKey, event: Event) -> Iterable[Changed]:
    if isinstance(event, PoolCreated | PoolChanged):
        state.pools[key] = Pool(backend=event.backend)
        yield "pool", key
