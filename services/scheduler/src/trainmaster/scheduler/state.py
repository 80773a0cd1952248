"""What the scheduler remembers of jobs, nodes, teams, pools, use and stops.

Only the rows are saved. The desk is derived from them, kept up to date by `fold` and
made anew when there is none, for example after loading.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from trainmaster.core.decision import Changed
from trainmaster.core.envelope import Entry
from trainmaster.core.events import Event, PreemptRequested
from trainmaster.core.facts import QuotaSet
from trainmaster.core.ids import JobId, JobKey, NodeKey, PoolKey, TeamKey
from trainmaster.core.jobs import Jobs
from trainmaster.core.nodes import Node, node_after
from trainmaster.core.notes import CheckpointVerified
from trainmaster.core.record import Job, JobState
from trainmaster.scheduler.desk import Desk
from trainmaster.scheduler.snapshot import Snapshot
from trainmaster.scheduler.teams import Pool, Team, pool_after, team_after
from trainmaster.scheduler.usage import TeamUse, charge_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """How often a job was stopped for others, and for whom last."""

    times: int = 0
    for_job: str = ""
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """When a job's newest whole checkpoint was seen."""

    at: datetime


@dataclass(slots=True)
class State:
    """Rows, and the desk."""

    jobs: Jobs = field(default_factory=Jobs)
    nodes: dict[NodeKey, Node] = field(default_factory=dict[NodeKey, Node])
    teams: dict[TeamKey, Team] = field(default_factory=dict[TeamKey, Team])
    pools: dict[PoolKey, Pool] = field(default_factory=dict[PoolKey, Pool])
    use: dict[TeamKey, TeamUse] = field(default_factory=dict[TeamKey, TeamUse])
    stopped: dict[JobKey, Stopped] = field(default_factory=dict[JobKey, Stopped])
    saved: dict[JobKey, Saved] = field(default_factory=dict[JobKey, Saved])
    _desk: Desk | None = None

    @property
    def desk(self) -> Desk:
        """Give what is derived, made from the rows when there is none yet."""
        if self._desk is None:
            self._desk = Desk()
            for key, team in self.teams.items():
                for pool, quota in team.quotas.items():
                    capped = quota.accelerators_per_user_max >= 0
                    self._desk.cap(key.team, pool, by_user=capped)
            for job in self.jobs.values():
                self._desk.move(None, job)
            for node in self.nodes:
                self._desk.touch(node)
        return self._desk

    def snapshot(self, pool: str, now: datetime) -> Snapshot:
        """Gather all that a plan of one pool depends on, to be planned at once."""
        desk = self.desk
        return Snapshot(
            pool=pool,
            now=now,
            rooms=desk.inventory.rooms(pool, self.nodes),
            lines=desk.queue(pool).lines(),
            teams=self.teams,
            use=self.use,
            user_use=desk.user_use.get(pool, {}),
            settings=self.pools.get(PoolKey(pool), Pool()),
            prices={k.pool: p.accelerator_hour_price for k, p in self.pools.items()},
            jobs=self.jobs,
            tenants=desk.inventory.tenants(pool),
            holds=desk.holds.get(pool, {}),
            preempted={key: each.times for key, each in self.stopped.items()},
            saved_at={key: each.at for key, each in self.saved.items()},
            claims=frozenset(self._claims(pool)),
        )

    def _claims(self, pool: str) -> Iterable[str]:
        """Name the waiting jobs for which others were stopped since they wait."""
        for each in self.stopped.values():
            job = self.jobs.by_id(JobId(each.for_job))
            if job is None or job.pool != pool or job.state is not JobState.QUEUED:
                continue
            if each.at >= job.since:
                yield each.for_job


def fold(state: State, entry: Entry) -> Iterable[Changed]:
    """Take one event in and name the rows it touched."""
    match entry.key:
        case JobKey() as key if isinstance(entry.event, CheckpointVerified):
            if key in state.jobs:
                state.saved[key] = Saved(at=entry.time)
                yield "saved", key
        case JobKey() as key:
            yield from _fold_job(state, key, entry)
        case NodeKey() as key:
            state.desk.touch(key)
            before = state.nodes.get(key, Node())
            state.nodes[key] = node_after(before, entry.event, entry.time)
            yield "node", key
        case TeamKey() as key:
            yield from _fold_team(state, key, entry.event)
        case PoolKey() as key:
            before_pool = state.pools.get(key, Pool())
            state.pools[key] = pool_after(before_pool, entry.event)
            state.desk.stale.update(state.desk.queues)
            yield "pool", key
        case _:
            pass  # a plan's marker only moves the head of its chain


def _fold_job(state: State, key: JobKey, entry: Entry) -> Iterable[Changed]:
    desk, before = state.desk, state.jobs.get(key)
    outcome = state.jobs.fold(entry)
    if not isinstance(outcome, Job):
        return
    desk.move(before, outcome)
    yield "job", key
    if _use(state, before, outcome, entry.time):
        yield "use", TeamKey(key.team)
    if isinstance(entry.event, PreemptRequested):
        times = state.stopped[key].times if key in state.stopped else 0
        state.stopped[key] = Stopped(
            times=times + 1, for_job=entry.event.for_job, at=entry.time
        )
        yield "stopped", key
    if outcome.archived:
        yield from _forget(state, key)


def _use(state: State, before: Job | None, after: Job, at: datetime) -> bool:
    """Move a team's charge with a job; False when nothing moved."""
    same_pool = before is None or before.pool == after.pool
    known = before.unreclaimed if before is not None else None
    if same_pool and (known is after.unreclaimed or not (known or after.unreclaimed)):
        return False
    old = charge_of(before) if before is not None else (0, 0)
    new = charge_of(after)
    if old == new and same_pool:
        return False
    team = state.use.get(TeamKey(after.key.team))
    if team is None:
        team = state.use[TeamKey(after.key.team)] = TeamUse()
    if before is not None and old != (0, 0):
        team.of(before.pool).change(at, -old[0], -old[1])
    team.of(after.pool).change(at, *new)
    return True


def _forget(state: State, key: JobKey) -> Iterable[Changed]:
    if state.stopped.pop(key, None) is not None:
        yield "stopped", key
    if state.saved.pop(key, None) is not None:
        yield "saved", key


def _fold_team(state: State, key: TeamKey, event: Event) -> Iterable[Changed]:
    before = state.teams.get(key, Team())
    after = team_after(before, event)
    if after == before:
        return
    state.teams[key] = after
    state.desk.stale.update(state.desk.queues)
    if isinstance(event, QuotaSet):
        capped = event.accelerators_per_user_max >= 0
        state.desk.cap(key.team, event.pool, by_user=capped)
    yield "team", key
