"""What a policy decides: events to append, answers to give, when to be woken."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeVar

from trainmaster.core.envelope import Entry
from trainmaster.core.events import Event
from trainmaster.core.ids import Key
from trainmaster.core.moment import Moment

S_contra = TypeVar("S_contra", contravariant=True)

Changed = tuple[str, Key]
"""A row that a fold touched: the collection's name and the key in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One event to append. `cause` tells apart events decided on the same head."""

    key: Key
    event: Event
    cause: str = ""


Group = tuple[Write, ...]
"""Events that are stored together or not at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What to tell whoever put in a fact; with `group`, once that group is stored."""

    fact: str
    value: Any
    group: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """All a policy wants at one moment."""

    groups: tuple[Group, ...] = ()
    answers: tuple[Answer, ...] = ()
    wake_at: datetime | None = None


def merge(decisions: Iterable[Decision]) -> Decision:
    """Join decisions of parts that do not touch the same jobs."""
    groups: list[Group] = []
    answers: list[Answer] = []
    wakes: list[datetime] = []
    for each in decisions:
        offset = len(groups)
        groups.extend(each.groups)
        answers.extend(
            Answer(fact=a.fact, value=a.value, group=a.group + offset)
            if a.group >= 0
            else a
            for a in each.answers
        )
        if each.wake_at is not None:
            wakes.append(each.wake_at)
    return Decision(
        groups=tuple(groups), answers=tuple(answers), wake_at=min(wakes, default=None)
    )


class Policy(Protocol[S_contra]):
    """The pure heart of a service.

    `fold` never raises and `decide` never waits. `decide` sees only a state that holds
    all events this service has appended, and must name the same events again when asked
    again on the same state. At most one transition of a job per decision.
    """

    @property
    def name(self) -> str:
        """Name the service."""
        ...

    @property
    def hears(self) -> tuple[str, ...]:
        """Name the subjects it folds, as filters."""
        ...

    def fold(self, state: S_contra, entry: Entry) -> Iterable[Changed]:
        """Take one event in and name the rows it touched."""
        ...

    def decide(
        self, state: S_contra, facts: Mapping[str, Any], now: Moment
    ) -> Decision:
        """Say what should be appended now."""
        ...
