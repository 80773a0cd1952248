"""Owns the jobs one can ask about: found by id, by a prefix, by name, newest first.

Rows are put in one by one, also when they are loaded, and every index follows.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from typing_extensions import override

from trainmaster.console.settings import FINISHED_KEPT
from trainmaster.console.view import JobView
from trainmaster.core.ids import JobKey


class _Placed(NamedTuple):
    """Where a job stands in an order of time."""

    at: datetime
    key: JobKey


class Shelf(dict[JobKey, JobView]):
    """Jobs by key; live ones, and the newest of the archived ones."""

    def __init__(self, *, finished_kept: int = FINISHED_KEPT) -> None:
        super().__init__()
        self._finished_kept = finished_kept
        self._ids: list[tuple[str, JobKey]] = []
        self._by_age: list[_Placed] = []
        self._archived: list[_Placed] = []
        self._named: dict[str, list[_Placed]] = {}
        self.charged: set[JobKey] = set()
        """Jobs whose attempts hold something of a node."""

    @override
    def __setitem__(self, key: JobKey, view: JobView) -> None:
        before = self.get(key)
        super().__setitem__(key, view)
        if before is None:
            placed = _Placed(view.job.submitted_at, key)
            insort(self._ids, (key.job, key))
            insort(self._by_age, placed)
            insort(self._named.setdefault(view.job.spec.name, []), placed)
        if view.job.archived and (before is None or not before.job.archived):
            insort(self._archived, _Placed(view.job.since, key))
        if view.job.unreclaimed:
            self.charged.add(key)
        else:
            self.charged.discard(key)

    @override
    def __delitem__(self, key: JobKey) -> None:
        view = self[key]
        super().__delitem__(key)
        placed = _Placed(view.job.submitted_at, key)
        self._ids.remove((key.job, key))
        self._by_age.remove(placed)
        named = self._named[view.job.spec.name]
        named.remove(placed)
        if not named:
            del self._named[view.job.spec.name]
        self.charged.discard(key)

    def drop_oldest(self) -> Iterator[JobKey]:
        """Forget the archived jobs that are too many; yields which."""
        while len(self._archived) > self._finished_kept:
            key = self._archived.pop(0).key
            del self[key]
            yield key

    def newest_first(self, *, before: JobKey | None = None) -> Iterator[JobView]:
        """Yield jobs, the newest first, from behind `before` on."""
        end = len(self._by_age)
        if before is not None:
            placed = _Placed(self[before].job.submitted_at, before)
            end = bisect_left(self._by_age, placed)
        for index in range(end - 1, -1, -1):
            yield self[self._by_age[index].key]

    def with_prefix(self, prefix: str) -> Iterator[JobKey]:
        """Yield the jobs whose id begins so; a whole id comes first."""
        for index in range(bisect_left(self._ids, (prefix,)), len(self._ids)):
            id_, key = self._ids[index]
            if not id_.startswith(prefix):
                return
            yield key

    def named(self, name: str) -> Iterator[JobKey]:
        """Yield the jobs of a name, the newest first."""
        for placed in reversed(self._named.get(name, [])):
            yield placed.key

    def names(self) -> Iterator[str]:
        """Yield the names there are."""
        yield from self._named
