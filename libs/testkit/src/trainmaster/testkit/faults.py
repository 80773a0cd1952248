"""Reducers with one fault put in, to see that a checker finds it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from trainmaster.core.changes import CHANGES
from trainmaster.core.events import Transition
from trainmaster.core.job import TRANSITIONS, Void, evolve
from trainmaster.core.record import Job
from trainmaster.testkit.replay import Evolve


def letting(kind: type[Transition]) -> Evolve:
    """Obey the table, but let every event of one kind count."""

    def lenient(job: Job, event: Transition, at: datetime) -> Job | Void:
        outcome = evolve(job, event, at)
        if isinstance(outcome, Job) or not isinstance(event, kind):
            return outcome
        target = next(iter(TRANSITIONS[type(event)].values()))
        change = {"state": target, **CHANGES[type(event)](job, event, at)}
        return replace(job, **change)

    return lenient


def twisting(kind: type[Transition], twist: Callable[[Job, Job], Job | Void]) -> Evolve:
    """Obey the table, but turn the job after an event of one kind into another.

    `twist` is given the job before the event and the right one after it.
    """

    def twisted(job: Job, event: Transition, at: datetime) -> Job | Void:
        outcome = evolve(job, event, at)
        if isinstance(outcome, Job) and isinstance(event, kind):
            return twist(job, outcome)
        return outcome

    return twisted


def names(found: Sequence[str], rule: str, *parts: str) -> bool:
    """Tell whether one violation of the rule says all these parts."""
    return any(
        each.startswith(f"{rule}: ") and all(part in each for part in parts)
        for each in found
    )
