"""Rows of the scheduler's state."""

from trainmaster.core.ids import JobKey, NodeKey, PoolKey, TeamKey
from trainmaster.core.nodes import Node
from trainmaster.runtime.tables import Collection, Tables, jobs_of
from trainmaster.scheduler.state import Saved, State, Stopped
from trainmaster.scheduler.teams import Pool, Team
from trainmaster.scheduler.usage import TeamUse


def tables() -> Tables[State]:
    """Describe the rows."""
    return Tables(
        service="scheduler",
        version=3,
        empty=State,
        collections=(
            jobs_of(lambda s: s.jobs),
            Collection("node", key=NodeKey, value=Node, of=_nodes),
            Collection("team", key=TeamKey, value=Team, of=_teams),
            Collection("pool", key=PoolKey, value=Pool, of=_pools),
            Collection("use", key=TeamKey, value=TeamUse, of=_use),
            Collection("stopped", key=JobKey, value=Stopped, of=_stopped),
            Collection("saved", key=JobKey, value=Saved, of=_saved),
        ),
    )


def _nodes(state: State) -> dict[NodeKey, Node]:
    return state.nodes


def _teams(state: State) -> dict[TeamKey, Team]:
    return state.teams


def _pools(state: State) -> dict[PoolKey, Pool]:
    return state.pools


def _use(state: State) -> dict[TeamKey, TeamUse]:
    return state.use


def _stopped(state: State) -> dict[JobKey, Stopped]:
    return state.stopped


def _saved(state: State) -> dict[JobKey, Saved]:
    return state.saved
