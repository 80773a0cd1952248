"""When rows are written, and which: what the state changed since the last time.

The log is the truth: what is not saved would be read again. So saving may wait a
little, which makes one row of many events, and never takes much of the loop's time.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Generic, TypeVar

from trainmaster.core.decision import Changed
from trainmaster.runtime.blindness import Blindness
from trainmaster.runtime.database import Changes, Leader
from trainmaster.runtime.heads import Heads
from trainmaster.runtime.reader import Place, StreamReader
from trainmaster.runtime.tables import Tables

S = TypeVar("S")
_SECONDS: Final = 0.2
_SECONDS_MAX: Final = 2.0
_SHARE: Final = 0.1  # of the loop's time, within the two bounds above
_ALIVE_SECONDS: Final = 5.0


@dataclass(slots=True, kw_only=True)
class Saver(Generic[S]):
    """What one loop saves, what of it has changed, and how far it was saved."""

    tables: Tables[S]
    epoch: int
    state: S
    heads: Heads
    blindness: Blindness
    readers: Sequence[StreamReader]
    _places: dict[str, Place] = field(default_factory=dict[str, Place])
    _rows: set[Changed] = field(default_factory=set[Changed])
    _scopes: set[str] = field(default_factory=set[str])
    _at: float = 0.0
    _seconds: float = _SECONDS

    def __post_init__(self) -> None:
        self._places = {r.stream: r.place for r in self.readers}

    def note(self, scope: str, rows: Iterable[Changed] = ()) -> None:
        """Remember what an event has changed: the head of a chain, and rows."""
        if scope:
            self._scopes.add(scope)
        self._rows.update(rows)

    @property
    def due_at(self) -> float:
        """Say when to save next, on the monotonic clock."""
        pending = self._rows or self._moved()
        return self._at + (self._seconds if pending else _ALIVE_SECONDS)

    async def save(self, leader: Leader, now: datetime) -> None:
        """Write all of it in one transaction. Raises LeadershipLostError."""
        began, moved = time.monotonic(), self._moved()
        changes = Changes(
            documents=self.tables.dump(self.state, self._rows),
            heads={scope: self.heads.by_scope.get(scope) for scope in self._scopes},
            moved=moved,
            alive_at=now,
            blind=tuple((i.start, i.end) for i in self.blindness.intervals),
        )
        await leader.save(changes, self.epoch)
        self._places.update({stream: after for stream, (_, after) in moved.items()})
        self._rows.clear()
        self._scopes.clear()
        self._at = time.monotonic()
        wait = max((self._at - began) / _SHARE, _SECONDS)
        self._seconds = min(wait, _SECONDS_MAX)

    def _moved(self) -> dict[str, tuple[Place, Place]]:
        places = [(r.stream, self._places[r.stream], r.place) for r in self.readers]
        return {name: (old, new) for name, old, new in places if old != new}
