"""Rows of the console's state."""

from trainmaster.console.state import State
from trainmaster.console.view import JobView, NodeView, Trail
from trainmaster.core.ids import JobKey, NodeKey
from trainmaster.runtime.tables import Collection, Tables


def tables() -> Tables[State]:
    """Describe the rows."""
    return Tables(
        service="console",
        version=1,
        empty=State,
        collections=(
            Collection("job", key=JobKey, value=JobView, of=_jobs),
            Collection("trail", key=JobKey, value=Trail, of=_trails),
            Collection("node", key=NodeKey, value=NodeView, of=_nodes),
        ),
    )


def _jobs(state: State) -> dict[JobKey, JobView]:
    return state.jobs


def _trails(state: State) -> dict[JobKey, Trail]:
    return state.trails


def _nodes(state: State) -> dict[NodeKey, NodeView]:
    return state.nodes
