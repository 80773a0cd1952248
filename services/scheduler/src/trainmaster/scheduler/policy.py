"""Why this job, why there, why not: one plan per pool, appended whole or not at all.

The plan's marker is compare-and-set on the pool's chain of plans: a scheduler whose
view is stale is refused with all it wanted to place.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from trainmaster.core import subjects
from trainmaster.core.decision import Changed, Decision, Group, Write
from trainmaster.core.envelope import Entry
from trainmaster.core.events import PlanMade
from trainmaster.core.ids import PlanKey
from trainmaster.core.moment import Moment
from trainmaster.scheduler import state as state_
from trainmaster.scheduler.desk import Planned
from trainmaster.scheduler.explain import told
from trainmaster.scheduler.plan import plan
from trainmaster.scheduler.result import Plan
from trainmaster.scheduler.settings import EXPLAIN_SECONDS
from trainmaster.scheduler.state import State


class Scheduler:
    """Gives accelerators to attempts, and every waiting job its reasons."""

    name = "scheduler"
    hears = (
        subjects.all_of("job"),
        subjects.all_of("note"),
        subjects.all_of("plan"),
        subjects.all_of("team"),
        subjects.all_of("pool"),
        subjects.all_of("node"),
    )

    def fold(self, state: State, entry: Entry) -> Iterable[Changed]:
        """Take one event in and name the rows it touched."""
        return state_.fold(state, entry)

    def decide(self, state: State, facts: Mapping[str, Any], now: Moment) -> Decision:
        """Place what fits, pool by pool, and say when to look again."""
        del facts  # the log tells all
        groups: list[Group] = []
        wakes: list[datetime] = []
        for pool, queue in sorted(state.desk.queues.items()):
            if not len(queue):
                continue
            planned = _planned(state, pool, now.at)
            if planned.plan.placements or planned.plan.preemptions:
                groups.append(_group(planned.plan))
            wakes.extend(_wakes(planned, _tell(state, planned, now.at)))
        return Decision(groups=tuple(groups), wake_at=min(wakes, default=None))


def _planned(state: State, pool: str, now: datetime) -> Planned:
    """Plan a pool, unless nothing it depends on has changed since the last time."""
    desk = state.desk
    known = desk.planned.get(pool)
    if known is not None and pool not in desk.stale:
        due = known.plan.changes_at
        if due is None or due > now:
            return known
    desk.stale.discard(pool)
    made = Planned(
        plan=plan(state.snapshot(pool, now)), told_at=known.told_at if known else None
    )
    desk.planned[pool] = made
    return made


def _group(made: Plan) -> Group:
    marker = PlanMade(
        placements=len(made.placements), preemptions=len(made.preemptions)
    )
    return (
        *(
            Write(key=stop.victim.key, event=stop.event(), cause=stop.request.key.job)
            for stop in made.preemptions
        ),
        *(
            Write(key=placement.request.key, event=placement.event(made.pool))
            for placement in made.placements
        ),
        # Last: whoever has read the marker has read all that was placed with it.
        Write(key=PlanKey(made.pool), event=marker),
    )


def _tell(state: State, planned: Planned, now: datetime) -> datetime | None:
    """Revise the reasons, or say when that may be done next."""
    if planned.told or planned.plan.full:
        return None
    if planned.told_at is not None:
        due = planned.told_at + timedelta(seconds=EXPLAIN_SECONDS)
        if due > now:
            return due
    planned.told, planned.told_at = True, now
    snapshots = {
        pool: state.snapshot(pool, now) for pool in state.desk.pools(planned.plan.pool)
    }
    state.desk.tell(planned.plan, told(planned.plan, snapshots))
    return None


def _wakes(planned: Planned, tell_at: datetime | None) -> Iterable[datetime]:
    return (at for at in (planned.plan.changes_at, tell_at) if at is not None)
