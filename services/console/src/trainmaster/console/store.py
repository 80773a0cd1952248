"""Rows of the console's state."""

from trainmaster.console.state import State
from trainmaster.console.view import JobView, Trail
from trainmaster.core.ids import JobKey, NodeKey, PoolKey, TeamKey, TokenKey
from trainmaster.core.nodes import Node
from trainmaster.core.teams import Pool, Team
from trainmaster.core.tokens import Token
from trainmaster.runtime.tables import Collection, Tables


def tables() -> Tables[State]:
    """Describe the rows."""
    return Tables(
        service="console",
        version=2,
        empty=State,
        collections=(
            Collection("job", key=JobKey, value=JobView, of=_jobs),
            Collection("trail", key=JobKey, value=Trail, of=_trails),
            Collection("node", key=NodeKey, value=Node, of=_nodes),
            Collection("team", key=TeamKey, value=Team, of=lambda s: s.teams),
            Collection("pool", key=PoolKey, value=Pool, of=lambda s: s.pools),
            Collection("token", key=TokenKey, value=Token, of=lambda s: s.tokens),
        ),
    )


def _jobs(state: State) -> dict[JobKey, JobView]:
    return state.jobs


def _trails(state: State) -> dict[JobKey, Trail]:
    return state.trails


def _nodes(state: State) -> dict[NodeKey, Node]:
    return state.nodes
