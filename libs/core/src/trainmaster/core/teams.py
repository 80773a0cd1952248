"""What is known of a team and of a pool, as the log tells it. Pure, total."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from trainmaster.core.events import Event
from trainmaster.core.facts import (
    PoolChanged,
    PoolCreated,
    QuotaSet,
    TeamCreated,
    TeamPaused,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """How many accelerators of a pool a team may hold; negative is no limit."""

    accelerators: int = -1
    borrowing: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    """One team. `until` ends a pause by itself."""

    created_at: datetime
    by: str = ""
    parent: str = ""
    paused: bool = False
    until: datetime | None = None
    quotas: Mapping[str, Quota] = field(default_factory=dict[str, Quota])


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """One pool; agents lease ports from its range, 0 is the platform's choice."""

    created_at: datetime
    by: str = ""
    backend: str = "process"
    port_first: int = 0
    port_last: int = 0


def team_after(team: Team | None, event: Event, at: datetime) -> Team | None:
    """Fold one fact about a team; what comes before it is created changes nothing."""
    match event:
        case TeamCreated() if team is None:
            return Team(created_at=at, by=event.by, parent=event.parent)
        case QuotaSet() if team is not None:
            quota = Quota(accelerators=event.accelerators, borrowing=event.borrowing)
            return replace(team, quotas={**team.quotas, event.pool: quota})
        case TeamPaused() if team is not None:
            return replace(team, paused=event.paused, until=event.until)
        case _:
            return team


def pool_after(pool: Pool | None, event: Event, at: datetime) -> Pool | None:
    """Fold one fact about a pool."""
    match event:
        case PoolCreated() if pool is None:
            return Pool(
                created_at=at,
                by=event.by,
                backend=event.backend,
                port_first=event.port_first,
                port_last=event.port_last,
            )
        case PoolChanged() if pool is not None:
            return replace(
                pool,
                backend=event.backend,
                port_first=event.port_first,
                port_last=event.port_last,
            )
        case _:
            return pool
