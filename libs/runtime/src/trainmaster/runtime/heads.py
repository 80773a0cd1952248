"""The last stored event of every chain a service decides on, void or not."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from trainmaster.core import subjects
from trainmaster.core.envelope import Entry, Undecodable, chain_of
from trainmaster.core.ids import Key


class Head(NamedTuple):
    """Where a chain ends: a position for the server's check, an id for ours."""

    seq: int = 0
    id: str = ""


NOTHING: Final = Head()


@dataclass(slots=True)
class Heads:
    """Heads by compare-and-set scope; a chain nobody has read is empty."""

    by_scope: dict[str, Head] = field(default_factory=dict[str, Head])

    def observe(self, entry: Entry | Undecodable) -> str:
        """Move the head of the entry's chain; returns the scope, "" for none."""
        if isinstance(entry, Entry):
            scope = subjects.scope(entry.family, entry.key)
        else:
            scope = chain_of(entry.subject)
        if scope:
            self.by_scope[scope] = Head(seq=entry.seq, id=entry.id)
        return scope

    def of(self, family: str, key: Key) -> tuple[str, Head]:
        """Name the scope a new event of `key` is checked against, and its head."""
        scope = subjects.scope(family, key)
        return scope, self.by_scope.get(scope, NOTHING)

    def snapshot(self) -> Mapping[str, Head]:
        """Copy all heads."""
        return dict(self.by_scope)
