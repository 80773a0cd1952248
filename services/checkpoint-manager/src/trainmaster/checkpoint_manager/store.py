"""Rows of the checkpoint-manager's state."""

from trainmaster.checkpoint_manager.state import Catalogue, NodeSeen, State
from trainmaster.core.ids import JobKey, NodeKey
from trainmaster.runtime.tables import Collection, Tables, jobs_of


def tables() -> Tables[State]:
    """Describe the rows."""
    return Tables(
        service="checkpoint-manager",
        version=1,
        empty=State,
        collections=(
            jobs_of(lambda s: s.jobs),
            Collection("node", key=NodeKey, value=NodeSeen, of=_nodes),
            Collection("catalogue", key=JobKey, value=Catalogue, of=_catalogues),
        ),
    )


def _nodes(state: State) -> dict[NodeKey, NodeSeen]:
    return state.nodes


def _catalogues(state: State) -> dict[JobKey, Catalogue]:
    return state.catalogues
