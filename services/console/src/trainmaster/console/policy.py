"""Reads everything and decides nothing."""

from collections.abc import Iterable, Mapping
from typing import Any

from trainmaster.console import state as state_
from trainmaster.console.state import State
from trainmaster.core import subjects
from trainmaster.core.decision import Changed, Decision
from trainmaster.core.envelope import Entry
from trainmaster.core.moment import Moment


class Console:
    """Folds the log into what people look at."""

    name = "console"
    hears = (
        subjects.all_of("job"),
        subjects.all_of("note"),
        subjects.all_of("plan"),
        subjects.all_of("team"),
        subjects.all_of("pool"),
        subjects.all_of("token"),
        subjects.all_of("audit"),
        subjects.all_of("node"),
        subjects.all_of("member"),
    )

    def fold(self, state: State, entry: Entry) -> Iterable[Changed]:
        """Take one event in and name the rows it touched."""
        return state_.fold(state, entry)

    def decide(self, state: State, facts: Mapping[str, Any], now: Moment) -> Decision:
        """Want nothing."""
        del state, facts, now
        return Decision()
