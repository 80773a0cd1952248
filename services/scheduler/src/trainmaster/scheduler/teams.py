"""What the scheduler knows of teams and pools: quota, pauses, budgets, windows. Pure.

Whatever is said is kept, also before a team or pool was created: facts of one team come
in order, but a limit that came early is no reason to forget it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, TypeVar

from trainmaster.core.events import Event
from trainmaster.core.facts import (
    BudgetSet,
    MaintenanceSet,
    PoolChanged,
    PoolCreated,
    PoolTuned,
    PriorityClassSet,
    QuotaSet,
    ReservationSet,
    TeamCreated,
    TeamPaused,
)
from trainmaster.core.spec import PRIORITY_CLASSES

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """What a team may hold of one pool; negative is no limit."""

    accelerators: int = -1
    borrowing: int = 0
    reclaim: str = ""
    weight: float = 1.0
    accelerators_per_job_max: int = -1
    accelerators_per_user_max: int = -1

    @property
    def limit(self) -> int:
        """Its own and what it may borrow; negative is no limit."""
        open_ended = self.accelerators < 0 or self.borrowing < 0
        return -1 if open_ended else self.accelerators + self.borrowing


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Money a team may spend in all; negative is no limit."""

    amount: float = -1.0
    currency: str = ""
    policy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    """One team. `until` ends a pause by itself."""

    parent: str = ""
    paused: bool = False
    until: datetime | None = None
    quotas: Mapping[str, Quota] = field(default_factory=dict[str, Quota])
    budget: Budget = field(default_factory=Budget)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A stretch of time on some nodes; None is for ever, no nodes is all of them.

    With `keeps` the nodes are kept for a team or a priority, else nobody may run there.
    """

    nodes: tuple[str, ...] = ()
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    reason: str = ""
    keeps: bool = False
    team: str = ""
    priority: int = 0

    def over(self, now: datetime) -> bool:
        """Tell whether it has ended."""
        return self.ends_at is not None and self.ends_at <= now


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityClass:
    """What jobs from a priority up may do to others, and others to them."""

    priority: int = 0
    preempts: bool = False
    protected: bool = False


CLASSES: Final[Mapping[str, PriorityClass]] = {
    name: PriorityClass(priority=priority, preempts=priority > 0)
    for name, priority in PRIORITY_CLASSES.items()
}
"""The classes of a pool that has none of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """One pool, as far as planning goes."""

    backend: str = ""
    spare_nodes: int = 0
    accelerator_hour_price: float = 0.0
    windows: Mapping[str, Span] = field(default_factory=dict[str, Span])
    reservations: Mapping[str, Span] = field(default_factory=dict[str, Span])
    classes: Mapping[str, PriorityClass] = field(
        default_factory=dict[str, PriorityClass]
    )

    @property
    def spans(self) -> Iterable[Span]:
        """All windows and reservations, in the order of their names."""
        yield from (self.windows[name] for name in sorted(self.windows))
        yield from (self.reservations[name] for name in sorted(self.reservations))

    def class_of(self, priority: int) -> PriorityClass:
        """Find the class of a priority: the highest that begins at or below it."""
        known = (self.classes or CLASSES).values()
        below = [each for each in known if each.priority <= priority]
        return max(below, key=lambda each: each.priority, default=PriorityClass())


def team_after(team: Team, event: Event) -> Team:
    """Fold one fact about a team; what it does not change stays."""
    match event:
        case TeamCreated():
            return replace(team, parent=event.parent)
        case QuotaSet():
            quota = Quota(
                accelerators=event.accelerators,
                borrowing=event.borrowing,
                reclaim=event.reclaim,
                weight=event.weight if 0 < event.weight < float("inf") else 1.0,
                accelerators_per_job_max=event.accelerators_per_job_max,
                accelerators_per_user_max=event.accelerators_per_user_max,
            )
            return replace(team, quotas={**team.quotas, event.pool: quota})
        case TeamPaused():
            return replace(team, paused=event.paused, until=event.until)
        case BudgetSet():
            budget = Budget(
                amount=event.amount,
                currency=event.currency,
                policy=event.policy,
            )
            return replace(team, budget=budget)
        case _:
            return team


def pool_after(pool: Pool, event: Event) -> Pool:
    """Fold one fact about a pool; what it does not change stays."""
    match event:
        case PoolCreated() | PoolChanged():
            return replace(pool, backend=event.backend)
        case PoolTuned():
            return replace(
                pool,
                spare_nodes=max(event.spare_nodes, 0),
                accelerator_hour_price=event.accelerator_hour_price,
            )
        case MaintenanceSet():
            span = None if event.withdrawn else _window(event)
            return replace(pool, windows=_with(pool.windows, event.name, span))
        case ReservationSet():
            span = None if event.withdrawn else _reservation(event)
            kept = _with(pool.reservations, event.name, span)
            return replace(pool, reservations=kept)
        case PriorityClassSet():
            made = None if event.withdrawn else _class(event)
            return replace(pool, classes=_with(pool.classes, event.name, made))
        case _:
            return pool


def _window(event: MaintenanceSet) -> Span:
    return Span(
        nodes=event.nodes,
        starts_at=event.starts_at,
        ends_at=event.ends_at,
        reason=event.reason,
    )


def _reservation(event: ReservationSet) -> Span:
    return Span(
        nodes=event.nodes,
        starts_at=event.starts_at,
        ends_at=event.ends_at,
        keeps=True,
        team=event.team,
        priority=event.priority,
    )


def _class(event: PriorityClassSet) -> PriorityClass:
    return PriorityClass(
        priority=event.priority, preempts=event.preempts, protected=event.protected
    )


def _with(known: Mapping[str, _T], name: str, value: _T | None) -> dict[str, _T]:
    left = {key: each for key, each in known.items() if key != name}
    return left if value is None else {**left, name: value}
