"""All that follows from the rows: queues, free rooms, holds, reasons. Never saved."""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime

from trainmaster.core.ids import JobKey, NodeKey
from trainmaster.core.messages import WaitReasons
from trainmaster.core.record import Job, JobState
from trainmaster.scheduler.inventory import Inventory
from trainmaster.scheduler.queue import Queue
from trainmaster.scheduler.result import Plan
from trainmaster.scheduler.snapshot import Hold, Request, hold_of, request_of
from trainmaster.scheduler.usage import charge_of

_HELD_IN = frozenset({JobState.SETTLING, JobState.QUEUED})


@dataclass(slots=True, kw_only=True)
class Planned:
    """The newest plan of a pool, and when its reasons were last told."""

    plan: Plan
    told: bool = False
    told_at: datetime | None = None


@dataclass(slots=True, kw_only=True)
class _Told:
    """What the lines of a pool were told last, and who was told at length."""

    lines: dict[int, tuple[tuple[Request, ...], WaitReasons]] = field(
        default_factory=dict[int, tuple[tuple[Request, ...], WaitReasons]]
    )
    foremost: AbstractSet[JobKey] = frozenset()


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
    holds: dict[str, dict[JobKey, Hold]] = field(
        default_factory=dict[str, dict[JobKey, Hold]]
    )
    _lines_told: dict[str, _Told] = field(default_factory=dict[str, _Told])
    user_use: dict[str, dict[tuple[str, str], int]] = field(
        default_factory=dict[str, dict[tuple[str, str], int]]
    )

    def queue(self, pool: str) -> Queue:
        """Give the queue of a pool, to be changed."""
        known = self.queues.get(pool)
        if known is None:
            known = self.queues[pool] = Queue()
        return known

    def pools(self, first: str) -> Iterable[str]:
        """Name a pool and all others where somebody waits or nodes are."""
        return {first, *self.queues, *self.inventory.pools()}

    def cap(self, team: str, pool: str, *, by_user: bool) -> None:
        """Part a team's lines by user, or join them."""
        self.queue(pool).cap(team, by_user=by_user)
        self.stale.add(pool)

    def move(self, before: Job | None, after: Job) -> None:
        """Follow one job."""
        self._recharge(before, after)
        if before is not None:
            self._leave(before, after)
        if after.state is JobState.QUEUED:
            self.queue(after.pool).add(request_of(after))
            self.stale.add(after.pool)
        elif self.waiting.pop(after.key, None) is not None:
            self.revised.add(after.key)
        if after.attempt and after.state in _HELD_IN:
            self._hold(after)

    def _leave(self, before: Job, after: Job) -> None:
        if before.state is JobState.QUEUED:
            self.queues[before.pool].remove(before.key)
            self.stale.add(before.pool)
        if before.attempt and after.state not in _HELD_IN:
            holds = self.holds.get(before.pool, {})
            if holds.pop(before.key, None) is not None:
                self.stale.add(before.pool)

    def _hold(self, job: Job) -> None:
        """Keep the nodes of a job that may come back."""
        hold, holds = hold_of(job), self.holds.setdefault(job.pool, {})
        if hold != holds.get(job.key):
            self.stale.add(job.pool)
        if hold is None:
            holds.pop(job.key, None)
        else:
            holds[job.key] = hold

    def _recharge(self, before: Job | None, after: Job) -> None:
        if before is not None:
            if before.unreclaimed is after.unreclaimed and before.pool == after.pool:
                self._follow_stop(before, after)
                return
            self._change(before, -1)
            self.inventory.release(before)
            self.stale.add(before.pool)
        self._change(after, 1)
        self.inventory.charge(after)
        self.stale.add(after.pool)

    def _follow_stop(self, before: Job, after: Job) -> None:
        """Plan again when somebody ahead may soon start because this one goes."""
        stops = after.state is JobState.STOPPING and before.state is not after.state
        if stops and len(self.queue(after.pool)):
            self.stale.add(after.pool)

    def _change(self, job: Job, sign: int) -> None:
        if not job.unreclaimed or not job.spec.accelerators_per_node:
            return
        count = charge_of(job)[0] * sign
        if count:
            use = self.user_use.setdefault(job.pool, {})
            who = job.key.team, job.by
            use[who] = use.get(who, 0) + count
            if not use[who]:
                del use[who]

    def touch(self, key: NodeKey) -> None:
        """Follow one node."""
        self.inventory.touch(key)
        self.stale.add(key.pool)

    def tell(self, plan: Plan, foremost: Mapping[JobKey, WaitReasons]) -> None:
        """Take over a plan's reasons and note whose have changed.

        A line that is as it was, and is told what it was told, is not walked along.
        """
        before = self._lines_told.get(plan.pool, _Told())
        told = self._lines_told[plan.pool] = _Told(foremost=foremost.keys())
        for requests, steady in plan.steady():
            told.lines[id(requests)] = (requests, steady)
            head, known = requests[0].key, before.lines.get(id(requests))
            same = known is not None and known[0] is requests and known[1] is steady
            if same and head not in before.foremost and head not in foremost:
                continue
            for request in requests:
                self._tell(request.key, foremost.get(request.key, steady))

    def _tell(self, key: JobKey, reasons: WaitReasons) -> None:
        known = self.waiting.get(key)
        if reasons is not known and reasons != known:
            self.waiting[key] = reasons
            self.revised.add(key)

    def take_revised(self) -> set[JobKey]:
        """Hand over whose reasons have changed since the last time."""
        revised, self.revised = self.revised, set()
        return revised
