"""What submission remembers: live jobs, and which teams and pools there are."""

from dataclasses import dataclass, field

from trainmaster.core.facts import PoolCreated, TeamCreated
from trainmaster.core.ids import PoolKey, TeamKey
from trainmaster.core.jobs import Jobs


@dataclass(slots=True)
class State:
    """Everything submission decides on."""

    jobs: Jobs = field(default_factory=Jobs)
    teams: dict[TeamKey, TeamCreated] = field(
        default_factory=dict[TeamKey, TeamCreated]
    )
    pools: dict[PoolKey, PoolCreated] = field(
        default_factory=dict[PoolKey, PoolCreated]
    )
