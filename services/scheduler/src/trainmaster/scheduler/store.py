"""Rows of the scheduler's state."""

from trainmaster.core.ids import NodeKey, PoolKey, TeamKey
from trainmaster.runtime.tables import Collection, Tables, jobs_of
from trainmaster.scheduler.nodes import Node, Pool, Team
from trainmaster.scheduler.state import State


def tables() -> Tables[State]:
    """Describe the rows."""
    return Tables(
        service="scheduler",
        version=1,
        empty=State,
        collections=(
            jobs_of(lambda s: s.jobs),
            Collection("node", key=NodeKey, value=Node, of=_nodes),
            Collection("team", key=TeamKey, value=Team, of=_teams),
            Collection("pool", key=PoolKey, value=Pool, of=_pools),
        ),
    )


def _nodes(state: State) -> dict[NodeKey, Node]:
    return state.nodes


def _teams(state: State) -> dict[TeamKey, Team]:
    return state.teams


def _pools(state: State) -> dict[PoolKey, Pool]:
    return state.pools
