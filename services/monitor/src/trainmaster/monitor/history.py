"""Keeps metrics until they are written: in batches, bounded, never waited for.

While PostgreSQL is away rows are kept up to a limit, then the newest are dropped and
counted: a training never stands because nobody writes down its loss.
"""

import asyncio
import contextlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Final, NamedTuple, Protocol

from prometheus_client import Counter

from trainmaster.core.errors import PermanentError, UnreachableError
from trainmaster.core.ids import JobId, JobKey
from trainmaster.core.messages import Progress
from trainmaster.monitor.settings import ROWS_MAX, WRITE_AGAIN_SECONDS, WRITE_SECONDS
from trainmaster.runtime.clock import pause
from trainmaster.runtime.telemetry import logger

_TOGETHER: Final = 5_000
_LAST_SECONDS: Final = 0.5


class Row(NamedTuple):
    """One metric of one rank at one step."""

    job: JobId
    attempt: int
    rank: int
    step: int
    name: str
    value: float
    at: datetime


class RowsRefusedError(PermanentError):
    """The database will never take these rows."""

    def __init__(self, *, count: int, problem: str) -> None:
        super().__init__(f"{count} metrics cannot be stored and are dropped: {problem}")


class Storage(Protocol):
    """Where metrics go. Saving the same again changes nothing.

    Every call may raise UnreachableError; `save_metrics` also RowsRefusedError.
    """

    async def save_metrics(self, rows: Sequence[Row]) -> None:
        """Write metrics."""
        ...

    async def save_progress(self, progress: Mapping[JobKey, Progress]) -> None:
        """Write how far jobs are."""
        ...

    async def forget(self, keys: Iterable[JobKey]) -> None:
        """Drop the progress of jobs."""
        ...

    async def progress(self) -> Mapping[JobKey, Progress]:
        """Read how far all jobs were."""
        ...


_Place = tuple[JobId, int, int, int, str]


class History:
    """Rows on their way to the storage; the newest word about a place holds."""

    def __init__(self, storage: Storage, *, dropped: Counter) -> None:
        self._storage = storage
        self._dropped = dropped
        self._rows: dict[_Place, Row] = {}
        self._progress: dict[JobKey, Progress] = {}
        self._gone: set[JobKey] = set()
        self._log = logger("monitor")

    def add(self, row: Row) -> None:
        """Take a row; drops it when too much is waiting."""
        place = row[:5]
        if len(self._rows) >= ROWS_MAX and place not in self._rows:
            self._dropped.inc()
            return
        self._rows[place] = row

    def note(self, key: JobKey, progress: Progress) -> None:
        """Take how far a job is."""
        self._progress[key] = progress
        self._gone.discard(key)

    def forget(self, key: JobKey) -> None:
        """Take that a job's progress need not be known any more."""
        self._progress.pop(key, None)
        self._gone.add(key)

    async def recall(self) -> Mapping[JobKey, Progress]:
        """Read how far jobs were before; waits until the storage is there."""
        while True:
            with contextlib.suppress(UnreachableError):
                return await self._storage.progress()
            await pause(WRITE_AGAIN_SECONDS)

    async def run(self) -> None:
        """Write until cancelled; what is left is written before it goes."""
        try:
            while True:
                await pause(
                    WRITE_SECONDS if await self.write() else WRITE_AGAIN_SECONDS
                )
        finally:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LAST_SECONDS):
                    await self.write()

    async def write(self) -> bool:
        """Write what is there; False when the storage is away."""
        try:
            while self._rows:
                await self._write_rows(dict(islice(self._rows.items(), _TOGETHER)))
            await self._write_progress()
        except UnreachableError as error:
            self._log.warning("metrics_not_written", error=str(error))
            return False
        return True

    async def _write_rows(self, batch: Mapping[_Place, Row]) -> None:
        try:
            await self._storage.save_metrics(list(batch.values()))
        except RowsRefusedError as error:
            self._dropped.inc(len(batch))
            self._log.warning("metrics_refused", error=str(error))
        self._drop(batch)

    def _drop(self, written: Mapping[_Place, Row]) -> None:
        """Forget what was written, unless there is a newer word by now."""
        for place, row in written.items():
            if self._rows.get(place) is row:
                del self._rows[place]

    async def _write_progress(self) -> None:
        if self._progress:
            batch = dict(self._progress)
            await self._storage.save_progress(batch)
            for key, progress in batch.items():
                if self._progress.get(key) is progress:
                    del self._progress[key]
        if self._gone:
            gone = set(self._gone)
            await self._storage.forget(gone)
            self._gone -= gone
