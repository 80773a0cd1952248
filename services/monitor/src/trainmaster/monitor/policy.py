"""Healthy or not, and how it is known: what becomes of nodes, what is remarked on jobs.

The log tells what should be; heartbeats, metrics and output come as facts. A finding
notifies and nothing more: the monitor ends no job.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from trainmaster.core import subjects
from trainmaster.core.decision import Changed, Decision, merge
from trainmaster.core.envelope import Entry
from trainmaster.core.moment import Moment
from trainmaster.monitor import state as state_
from trainmaster.monitor.findings import decide_ends, decide_losses
from trainmaster.monitor.node_life import decide_nodes
from trainmaster.monitor.observed import HEARD
from trainmaster.monitor.reported import decide_reported
from trainmaster.monitor.state import State


class Monitor:
    """Says which nodes there are, and what is wrong with jobs."""

    name = "monitor"
    hears = (
        subjects.all_of("job"),
        subjects.all_of("note"),
        subjects.all_of("node"),
    )

    def fold(self, state: State, entry: Entry) -> Iterable[Changed]:
        """Take one event in and name the rows it touched."""
        return state_.fold(state, entry)

    def decide(self, state: State, facts: Mapping[str, Any], now: Moment) -> Decision:
        """Say what became of nodes and what is to be remarked."""
        return merge(
            (
                decide_nodes(state, facts.get(HEARD), now),
                decide_ends(state, facts, now),
                decide_losses(state, facts),
                decide_reported(state),
            )
        )
