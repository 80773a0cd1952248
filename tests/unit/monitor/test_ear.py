"""From messages to progress, metrics and remarks: who speaks for a job, what counts."""

import json
from datetime import UTC, datetime
from math import isnan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.monitor.world import KEY

from trainmaster.core import subjects
from trainmaster.core.ids import JobId, JobKey
from trainmaster.core.messages import MetricSample, OutputChunk, Progress
from trainmaster.monitor.board import Board
from trainmaster.monitor.ear import Ear
from trainmaster.monitor.history import Row
from trainmaster.monitor.inbox import Arrival, Inbox
from trainmaster.monitor.observed import NotFinite
from trainmaster.monitor.settings import (
    JOBS_MAX,
    METRICS_PER_SAMPLE_MAX,
    QUEUE_BYTES_MAX,
    QUEUE_MESSAGES_MAX,
)

pytestmark = pytest.mark.unit

AT = datetime(2026, 1, 1, tzinfo=UTC)


class Listener:
    """An ear whose every word is kept."""

    def __init__(self) -> None:
        self.board = Board()
        self.rows: list[Row] = []
        self.remarks: list[NotFinite] = []
        self.malformed: list[bool] = []
        self._ear = Ear(
            board=self.board,
            row=self.rows.append,
            not_finite=self.remarks.append,
            malformed=self.malformed.append,
        )
        self._offsets: dict[str, int] = {}

    def hear(self, subject: str, body: bytes, *, metric: bool = False) -> None:
        arrival = Arrival(subject=subject, body=body, metric=metric)
        for _ in self._ear.hear(arrival, AT):
            pass

    def output(self, text: str, *, attempt: int = 1, rank: int = 0) -> None:
        subject = subjects.output(KEY, attempt, rank)
        offset = self._offsets.get(subject, 0)
        self._offsets[subject] = offset + len(text.encode())
        self.hear(subject, OutputChunk(offset=offset, text=text).to_json())

    def metric(self, step: int, *, attempt: int = 1, rank: int = 0, **v: Any) -> None:
        subject = subjects.metric(KEY, attempt, rank)
        sample = MetricSample(step=step, at=AT, values=v)
        self.hear(subject, sample.to_json(), metric=True)

    @property
    def progress(self) -> tuple[int, int, float | None]:
        seen = self.board.newest.get(KEY, Progress())
        return seen.attempt, seen.step, seen.loss


@pytest.fixture
def ear() -> Listener:
    return Listener()


def test_a_printed_line_is_progress_and_history(ear: Listener):
    ear.output("step 10 loss 2.5 lr 0.1\n")
    assert ear.progress == (1, 10, 2.5)
    assert ear.rows == [Row(KEY.job, 1, 0, 10, "loss", 2.5, AT)]


def test_a_reported_step_is_progress_with_all_its_metrics(ear: Listener):
    ear.metric(10, loss=2.5, tokens_per_s=100.0)
    assert ear.progress == (1, 10, 2.5)
    assert [(row.name, row.value) for row in ear.rows] == [
        ("loss", 2.5),
        ("tokens_per_s", 100.0),
    ]


def test_once_a_rank_reports_its_printed_lines_are_not_read(ear: Listener):
    ear.metric(10, loss=2.5)
    ear.output("step 99 loss 9.5\n")
    assert ear.progress == (1, 10, 2.5)
    assert len(ear.rows) == 1


def test_a_reported_step_counts_for_more_than_a_printed_one_of_a_lower_rank(
    ear: Listener,
):
    ear.metric(10, rank=3, loss=2.5)
    ear.output("step 99 loss 9.5\n", rank=0)
    assert ear.progress == (1, 10, 2.5)


def test_the_lowest_rank_speaks_for_the_job(ear: Listener):
    ear.output("step 5 loss 3.5\n", rank=2)
    assert ear.progress == (1, 5, 3.5)
    ear.output("step 4 loss 3.0\n", rank=1)
    assert ear.progress == (1, 4, 3.0)
    ear.output("step 6 loss 9.0\n", rank=2)
    assert ear.progress == (1, 4, 3.0)


def test_a_later_attempt_may_go_back(ear: Listener):
    ear.metric(100, loss=1.5)
    ear.output("step 60 loss 2.0\n", attempt=2, rank=1)
    assert ear.progress == (2, 60, 2.0)
    ear.metric(101, loss=1.4)
    assert ear.progress == (2, 60, 2.0)


def test_a_step_without_a_loss_keeps_the_last_one(ear: Listener):
    ear.metric(10, loss=2.5)
    ear.metric(11, grad_norm=0.5)
    assert ear.progress == (1, 11, 2.5)


def test_a_new_attempt_does_not_inherit_a_loss(ear: Listener):
    ear.metric(10, loss=2.5)
    ear.metric(5, attempt=2, grad_norm=0.5)
    assert ear.progress == (2, 5, None)


def test_a_phase_without_a_step_is_no_progress(ear: Listener):
    ear.metric(10, loss=2.5)
    ear.metric(0)
    assert ear.progress == (1, 10, 2.5)


def test_a_loss_that_is_no_number_is_remarked_once_per_attempt(ear: Listener):
    ear.output("step 10 loss nan\nstep 11 loss nan\n")
    ear.output("step 12 loss inf\n", rank=1)
    ear.output("step 7 loss -inf\n", attempt=2)
    assert [(r.attempt, r.step, r.text) for r in ear.remarks] == [
        (1, 10, "nan"),
        (2, 7, "-inf"),
    ]
    assert isnan(ear.rows[0].value)


@pytest.mark.parametrize("word", ["nan", "NaN", "Infinity", "-inf"])
def test_a_reported_loss_that_is_no_number_is_remarked(ear: Listener, word: str):
    body = json.dumps({"step": 3, "values": {"loss": word}}).encode()
    ear.hear(subjects.metric(KEY, 1, 0), body, metric=True)
    assert len(ear.remarks) == 1
    assert ear.malformed == []


@pytest.mark.parametrize(
    ("subject", "body", "metric"),
    [
        (subjects.output(KEY, 1, 0), b"{", False),
        (subjects.output(KEY, 1, 0), b'{"offset":"x"}', False),
        (subjects.metric(KEY, 1, 0), b"[]", True),
        (subjects.metric(KEY, 1, 0), b'{"step":1e99}', True),
        (subjects.metric(KEY, 1, 0), b'{"values":{"loss":"high"}}', True),
        ("tm.out.default.job-1.1", b"{}", False),
        ("tm.out.default.job-1.x.0", b"{}", False),
        ("tm.out.default.job-1.1.99999999999999", b"{}", False),
    ],
    ids=str,
)
def test_what_nobody_can_read_is_counted(
    ear: Listener, subject: str, body: bytes, *, metric: bool
):
    ear.hear(subject, body, metric=metric)
    assert ear.malformed == [metric]
    ear.output("step 10 loss 2.5\n", rank=7)
    assert ear.progress == (1, 10, 2.5)


def test_metrics_per_step_are_bounded_and_named_so_that_they_can_be_stored(
    ear: Listener,
):
    many: dict[str, Any] = {f"m{n}": 1.0 for n in range(1000)}
    ear.metric(1, **many)
    assert len(ear.rows) == METRICS_PER_SAMPLE_MAX
    body = json.dumps({"step": 2, "values": {"a\0b": 1, "x" * 999: 1, "ok": 1}})
    ear.hear(subjects.metric(KEY, 1, 0), body.encode(), metric=True)
    assert [row.name for row in ear.rows if row.step == 2] == ["ok"]


@given(body=st.binary(max_size=200), metric=st.booleans())
def test_no_message_whatever_breaks_the_ear(body: bytes, *, metric: bool):
    ear = Listener()
    subject = (subjects.metric if metric else subjects.output)(KEY, 1, 0)
    ear.hear(subject, body, metric=metric)
    ear.output(body.decode(errors="replace"))
    assert len(ear.malformed) <= 1


# --------------------------------------------------------------------------- board


def test_what_was_known_before_a_restart_is_kept_until_something_newer_comes():
    ear = Listener()
    known = Progress(attempt=2, step=50, loss=1.5)
    other = JobKey("default", JobId("job-2"))
    ear.metric(7, attempt=3, loss=2.0)
    ear.board.recall({KEY: known, other: known})
    assert ear.progress == (3, 7, 2.0)
    assert ear.board.newest[other] == known
    assert ear.board.take_changed() == {KEY, other}


def test_after_a_restart_any_rank_of_the_same_attempt_may_speak():
    ear = Listener()
    ear.board.recall({KEY: Progress(attempt=2, step=50, loss=1.5)})
    ear.output("step 51 loss 1.4\n", attempt=2, rank=9)
    assert ear.progress == (2, 51, 1.4)
    ear.output("step 99 loss 1.4\n", attempt=1)
    assert ear.progress == (2, 51, 1.4)


def test_a_change_is_handed_over_once(ear: Listener):
    ear.metric(1, loss=1.0)
    assert ear.board.take_changed() == {KEY}
    assert ear.board.take_changed() == set()


def test_the_number_of_jobs_is_bounded(ear: Listener):
    known = {
        JobKey("default", JobId(f"old-{n}")): Progress(attempt=1)
        for n in range(JOBS_MAX)
    }
    ear.board.recall(known)
    ear.metric(1, loss=1.0)
    assert len(ear.board.newest) == JOBS_MAX
    assert KEY in ear.board.newest


def test_who_must_leave_the_board_is_handed_over_once(ear: Listener):
    oldest, *others = (JobKey("default", JobId(f"{n}")) for n in range(JOBS_MAX + 1))
    ear.board.recall(dict.fromkeys((oldest, *others), Progress(attempt=1)))
    assert ear.board.take_gone() == {oldest}
    assert ear.board.take_gone() == set()
    assert ear.board.of(oldest.job) is None
    assert ear.board.of(others[0].job) == (others[0], Progress(attempt=1))


# --------------------------------------------------------------------------- inbox


async def test_messages_come_out_in_the_order_they_came_in():
    inbox = Inbox()
    for number in range(3):
        assert inbox.put(Arrival(subject=str(number), body=b""))
    assert [(await inbox.get()).subject for _ in range(3)] == ["0", "1", "2"]
    assert inbox.bytes == 0


def test_a_full_inbox_drops_the_newest():
    inbox = Inbox()
    for _ in range(QUEUE_MESSAGES_MAX):
        assert inbox.put(Arrival(subject="s", body=b"x"))
    assert not inbox.put(Arrival(subject="s", body=b"x"))


def test_an_inbox_is_bounded_in_bytes_as_well():
    inbox = Inbox()
    large = Arrival(subject="s", body=bytes(2**20))
    taken = sum(inbox.put(large) for _ in range(100))
    assert taken == QUEUE_BYTES_MAX // large.size
