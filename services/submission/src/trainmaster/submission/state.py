"""What submission remembers: live jobs, teams, pools, nodes, tokens."""

from dataclasses import dataclass, field

from trainmaster.core.ids import NodeKey, PoolKey, TeamKey, TokenKey
from trainmaster.core.jobs import Jobs
from trainmaster.core.nodes import Node
from trainmaster.core.teams import Pool, Team
from trainmaster.core.tokens import Token


@dataclass(slots=True)
class State:
    """Everything submission decides on."""

    jobs: Jobs = field(default_factory=Jobs)
    teams: dict[TeamKey, Team] = field(default_factory=dict[TeamKey, Team])
    pools: dict[PoolKey, Pool] = field(default_factory=dict[PoolKey, Pool])
    nodes: dict[NodeKey, Node] = field(default_factory=dict[NodeKey, Node])
    tokens: dict[TokenKey, Token] = field(default_factory=dict[TokenKey, Token])
