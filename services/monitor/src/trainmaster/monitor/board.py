"""How far each job is: the newest word of the rank that may speak for it.

A later attempt replaces an earlier one, so that a step may go back. Within an attempt
the metrics file counts for more than printed lines, and the lowest rank speaks. Jobs
that are over stay, until there are too many newer ones.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from trainmaster.core.ids import JobId, JobKey
from trainmaster.core.messages import Progress
from trainmaster.monitor.settings import JOBS_MAX

_NOBODY = 2**31


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """What one rank said of one step; `declared` is in a metrics file."""

    key: JobKey
    attempt: int
    rank: int
    step: int
    at: datetime
    loss: float | None = None
    declared: bool = False

    @property
    def weight(self) -> tuple[int, bool, int]:
        """Order words by how much they count."""
        return self.attempt, self.declared, -self.rank


@dataclass(slots=True)
class Board:
    """Progress by job, and whose has changed since it was last asked for."""

    newest: OrderedDict[JobKey, Progress] = field(
        default_factory=OrderedDict[JobKey, Progress]
    )
    _weights: dict[JobKey, tuple[int, bool, int]] = field(
        default_factory=dict[JobKey, tuple[int, bool, int]]
    )
    _changed: set[JobKey] = field(default_factory=set[JobKey])
    _by_id: dict[JobId, JobKey] = field(default_factory=dict[JobId, JobKey])
    _gone: set[JobKey] = field(default_factory=set[JobKey])

    def take(self, word: Word) -> bool:
        """Take a word in; False when somebody with more weight speaks for the job."""
        if word.weight < self._weights.get(word.key, (0, False, -_NOBODY)):
            return False
        before = self.newest.get(word.key)
        loss = word.loss
        if loss is None and before is not None and before.attempt == word.attempt:
            loss = before.loss
        progress = Progress(attempt=word.attempt, step=word.step, loss=loss, at=word.at)
        self._put(word.key, progress, word.weight)
        self._drop_oldest()
        return True

    def recall(self, known: Mapping[JobKey, Progress]) -> None:
        """Put back what was known before, unless it is older than what is here."""
        heard, self.newest = self.newest, OrderedDict()
        for key, progress in known.items():
            if key not in heard:
                self._put(key, progress, (progress.attempt, False, -_NOBODY))
        self.newest.update(heard)
        self._drop_oldest()

    def _put(
        self, key: JobKey, progress: Progress, weight: tuple[int, bool, int]
    ) -> None:
        self.newest[key] = progress
        self.newest.move_to_end(key)
        self._by_id[key.job] = key
        self._weights[key] = weight
        self._changed.add(key)
        self._gone.discard(key)

    def _drop_oldest(self) -> None:
        while len(self.newest) > JOBS_MAX:
            key, _ = self.newest.popitem(last=False)
            self._by_id.pop(key.job, None)
            self._weights.pop(key, None)
            self._changed.discard(key)
            self._gone.add(key)

    def of(self, job: JobId) -> tuple[JobKey, Progress] | None:
        """Find a job and how far it is, by its id alone."""
        key = self._by_id.get(job)
        return None if key is None else (key, self.newest[key])

    def take_changed(self) -> set[JobKey]:
        """Hand over whose progress has changed since the last time."""
        changed, self._changed = self._changed, set()
        return changed

    def take_gone(self) -> set[JobKey]:
        """Hand over who has left since the last time."""
        gone, self._gone = self._gone, set()
        return gone

    def snapshot(self) -> Mapping[JobKey, Progress]:
        """Copy all progress."""
        return dict(self.newest)
