"""Metrics on their way to the storage: in batches, bounded, kept while it is away."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

import pytest
from prometheus_client import CollectorRegistry, Counter
from tests.unit.monitor.world import KEY

from trainmaster.core.errors import UnreachableError
from trainmaster.core.ids import JobId, JobKey
from trainmaster.core.messages import Progress
from trainmaster.monitor.history import History, Row, RowsRefusedError
from trainmaster.monitor.settings import ROWS_MAX

pytestmark = pytest.mark.unit

AT = datetime(2026, 1, 1, tzinfo=UTC)


class FakeStorage:
    """Keeps rows in memory; can be away, and refuses what the test says."""

    def __init__(self) -> None:
        self.away = False
        self.refuses = ""
        self.batches: list[int] = []
        self.rows: dict[tuple[object, ...], float] = {}
        self.known: dict[JobKey, Progress] = {}
        self.history: History | None = None
        self.said_meanwhile: list[Row] = []

    def _reach(self) -> None:
        if self.away:
            raise UnreachableError(what="PostgreSQL", address="here", hint="wait")

    async def save_metrics(self, rows: Sequence[Row]) -> None:
        self._reach()
        if any(row.name == self.refuses for row in rows):
            raise RowsRefusedError(count=len(rows), problem="no such number")
        self.batches.append(len(rows))
        self.rows.update({row[:5]: row.value for row in rows})
        while self.said_meanwhile and self.history is not None:
            self.history.add(self.said_meanwhile.pop())

    async def save_progress(self, progress: Mapping[JobKey, Progress]) -> None:
        self._reach()
        self.known.update(progress)

    async def forget(self, keys: Iterable[JobKey]) -> None:
        self._reach()
        for key in keys:
            self.known.pop(key, None)

    async def progress(self) -> Mapping[JobKey, Progress]:
        self._reach()
        return dict(self.known)


def a_row(step: int, value: float = 1.0, name: str = "loss") -> Row:
    return Row(KEY.job, 1, 0, step, name, value, AT)


@pytest.fixture
def storage() -> FakeStorage:
    return FakeStorage()


@pytest.fixture
def dropped() -> Counter:
    return Counter("dropped", "Rows", registry=CollectorRegistry())


@pytest.fixture
def history(storage: FakeStorage, dropped: Counter) -> History:
    return History(storage, dropped=dropped)


def count(counter: Counter) -> float:
    return next(iter(counter.collect())).samples[0].value


async def test_rows_are_written_together(history: History, storage: FakeStorage):
    for step in range(100):
        history.add(a_row(step))
    assert await history.write()
    assert storage.batches == [100]
    assert await history.write()
    assert storage.batches == [100]


async def test_of_one_step_the_last_word_is_written(
    history: History, storage: FakeStorage
):
    history.add(a_row(1, 2.0))
    history.add(a_row(1, 3.0))
    await history.write()
    assert list(storage.rows.values()) == [3.0]


async def test_rows_are_kept_while_the_storage_is_away(
    history: History, storage: FakeStorage
):
    history.add(a_row(1))
    history.note(KEY, Progress(attempt=1, step=1))
    storage.away = True
    assert not await history.write()
    storage.away = False
    assert await history.write()
    assert (len(storage.rows), set(storage.known)) == (1, {KEY})


async def test_too_many_rows_are_dropped_and_counted(
    history: History, storage: FakeStorage, dropped: Counter
):
    for step in range(ROWS_MAX + 7):
        history.add(a_row(step))
    history.add(a_row(0, 9.0))
    assert count(dropped) == 7
    await history.write()
    assert len(storage.rows) == ROWS_MAX
    assert max(storage.batches) < ROWS_MAX


async def test_a_word_that_comes_while_writing_is_not_lost(
    history: History, storage: FakeStorage
):
    history.add(a_row(1, 2.0))
    storage.said_meanwhile = [a_row(1, 3.0)]
    storage.history = history
    await history.write()
    assert list(storage.rows.values()) == [3.0]


async def test_rows_the_database_will_never_take_block_nothing(
    history: History, storage: FakeStorage, dropped: Counter
):
    storage.refuses = "odd"
    history.add(a_row(1, name="odd"))
    assert await history.write()
    history.add(a_row(2))
    assert await history.write()
    assert (count(dropped), len(storage.rows)) == (1, 1)


async def test_progress_that_nobody_needs_is_forgotten(
    history: History, storage: FakeStorage
):
    other = JobKey("default", JobId("job-2"))
    storage.known = {KEY: Progress(), other: Progress()}
    history.note(KEY, Progress(attempt=1, step=1))
    history.forget(KEY)
    await history.write()
    assert set(await history.recall()) == {other}
