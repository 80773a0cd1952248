"""The launch protocol: every state, and what moves an attempt out of it."""

from datetime import timedelta
from typing import Any

import pytest
from tests.unit.launcher.scenes import (
    FAILURE,
    PREPARED,
    STARTED,
    STOPPED,
    Scene,
    closed,
    exited,
)

from trainmaster.core.events import AttemptEnded, AttemptStarted, StartOrdered
from trainmaster.core.facts import MemberPrepared, MemberStarted
from trainmaster.core.record import JobState
from trainmaster.core.values import Cause
from trainmaster.testkit.builders import LIVES, START, a_spec

pytestmark = pytest.mark.unit

QUIET = [s for s in JobState if s not in {JobState.NEW, JobState.STOPPING}]


@pytest.mark.parametrize("state", QUIET)
def test_without_reports_nothing_is_decided(state: JobState):
    assert Scene(LIVES[state]).decided() == []


# -------------------------------------------------------------------------- prepared


def test_an_attempt_waits_for_its_last_member():
    scene = Scene("submitted placed").report("n1", PREPARED)
    assert scene.decided() == []


def test_a_start_is_ordered_when_all_members_are_prepared_and_equal():
    scene = Scene("submitted placed")
    scene.report("n2", PREPARED.model_copy(update={"address": "b", "port": 2}))
    scene.report("n1", PREPARED.model_copy(update={"address": "a", "port": 1}))
    assert scene.only() == StartOrdered(
        attempt=1, master_address="a", master_port=1, addresses=("a", "b")
    )


def test_a_start_carries_the_restore_point_of_the_attempt():
    words = "submitted placed ended reclaimed chosen requeued placed"
    scene = Scene(words)
    for node in scene.job.nodes:
        scene.report(node, PREPARED, attempt=2)
    event = scene.only()
    assert isinstance(event, StartOrdered)
    assert event.restore == scene.job.restore
    assert event.restore is not None


def test_a_failed_preparation_ends_the_attempt_and_names_node_and_field():
    scene = Scene("submitted placed").report("n2", MemberPrepared(failure=FAILURE))
    event = scene.only()
    assert isinstance(event, AttemptEnded)
    assert (event.cause, event.node) == (Cause.PREPARE_FAILED, "n2")
    assert event.reason == "n2: program `command`: no file /x"


def test_unequal_members_end_the_attempt_and_name_the_odd_one():
    scene = Scene("submitted placed", spec=a_spec(nodes=3))
    scene.all_report(PREPARED, nodes=("n1", "n3"))
    odd = PREPARED.model_copy(update={"versions": {"python": "3.12.1"}})
    scene.report("n2", PREPARED.model_copy(update=odd.model_dump()))
    event = scene.only()
    assert isinstance(event, AttemptEnded)
    assert (event.cause, event.node) == (Cause.VERSION_MISMATCH, "n2")


def test_reports_of_another_attempt_start_nothing():
    scene = Scene("submitted placed ended reclaimed requeued placed")
    scene.all_report(PREPARED, nodes=scene.job.nodes)
    assert scene.decided() == []


# --------------------------------------------------------------------------- started


def test_an_attempt_runs_when_all_members_have_started():
    scene = Scene("submitted placed ordered").report("n1", STARTED)
    assert scene.decided() == []
    scene.report("n2", STARTED)
    assert scene.only() == AttemptStarted(attempt=1)


def test_a_member_that_cannot_start_ends_the_attempt():
    scene = Scene("submitted placed ordered")
    scene.report("n1", STARTED).report("n2", MemberStarted(failure=FAILURE))
    event = scene.only()
    assert isinstance(event, AttemptEnded)
    assert (event.cause, event.node) == (Cause.START_FAILED, "n2")


def test_a_job_that_ends_at_once_is_first_started_and_then_completed():
    scene = Scene("submitted placed ordered")
    scene.report("n1", exited(0), STARTED).report("n2", exited(1))
    started, ended = scene.settle()
    assert started == AttemptStarted(attempt=1)
    assert isinstance(ended, AttemptEnded)
    assert ended.cause is Cause.COMPLETED
    assert scene.job.clean


def test_a_rank_that_fails_before_all_have_started_ends_the_attempt():
    scene = Scene("submitted placed ordered").report("n2", exited(1, code=3))
    event = scene.only()
    assert isinstance(event, AttemptEnded)
    assert event.cause is Cause.RANK_FAILED


# ------------------------------------------------------------------------------ ended

RUNNING = LIVES[JobState.RUNNING]


def test_a_running_attempt_goes_on_until_its_last_rank_has_ended():
    scene = Scene(RUNNING).report("n1", STARTED, exited(0)).report("n2", STARTED)
    assert scene.decided() == []


@pytest.mark.parametrize(
    ("how", "cause", "words"),
    [
        ({"code": 3}, Cause.RANK_FAILED, "exited with 3"),
        ({"signal": 11}, Cause.RANK_FAILED, "was ended by signal 11 (SIGSEGV)"),
        ({"signal": 9}, Cause.INFRASTRUCTURE, "was ended by signal 9 (SIGKILL)"),
        ({"unknown": True}, Cause.INFRASTRUCTURE, "ended, but nobody saw how"),
        (
            {"signal": 9, "out_of_memory": True},
            Cause.OUT_OF_MEMORY,
            "ran out of memory",
        ),
        (
            {"signal": 15, "by_us": True},
            Cause.INFRASTRUCTURE,
            "was ended by signal 15 (SIGTERM) after a signal from us",
        ),
    ],
)
def test_the_first_failing_rank_ends_the_attempt(
    how: dict[str, Any], cause: Cause, words: str
):
    scene = Scene(RUNNING).report("n2", exited(1, **how))
    event = scene.only()
    assert isinstance(event, AttemptEnded)
    assert (event.cause, event.node) == (cause, "n2")
    assert event.reason == f"rank 1 on n2 {words}"


def test_the_rank_that_failed_first_is_named_with_its_last_lines():
    scene = Scene(RUNNING)
    scene.report("n1", exited(0, code=1, at=START + timedelta(seconds=9)))
    scene.report("n2", exited(1, code=2, at=START, last_lines=("boom",)))
    event = scene.only()
    assert isinstance(event, AttemptEnded)
    assert event.first is not None
    assert (event.first.rank, event.first.last_lines) == (1, ("boom",))
    assert [(e.rank, e.code, e.last_lines) for e in event.exits] == [
        (0, 1, ()),
        (1, 2, ()),
    ]


def test_a_known_exit_is_not_replaced_by_an_unknown_one():
    scene = Scene(RUNNING).report("n1", exited(0)).report("n2", exited(1))
    scene.report("n1", exited(0, unknown=True))
    event = scene.only()
    assert isinstance(event, AttemptEnded)
    assert event.cause is Cause.COMPLETED


@pytest.mark.parametrize("words", ["submitted placed", RUNNING])
def test_a_node_that_has_nothing_left_ends_the_attempt(words: str):
    scene = Scene(words).report("n2", closed("boot_id"))
    event = scene.only()
    assert isinstance(event, AttemptEnded)
    assert (event.cause, event.node) == (Cause.NODE_LOST, "n2")


# --------------------------------------------------------------------------- stopping


def test_a_stop_before_the_start_ends_the_attempt_at_once():
    scene = Scene("submitted placed cancel")
    event = scene.only()
    assert isinstance(event, AttemptEnded)
    assert event.cause is Cause.CANCELLED


def test_a_stop_waits_until_every_member_has_carried_it_out():
    scene = Scene(LIVES[JobState.STOPPING]).report("n1", STOPPED)
    assert scene.decided() == []
    scene.report("n2", exited(1, signal=15, by_us=True))
    event = scene.only()
    assert isinstance(event, AttemptEnded)
    assert (event.cause, len(event.exits)) == (Cause.FINDING, 1)


def test_a_closed_member_has_stopped():
    scene = Scene(LIVES[JobState.STOPPING]).report("n1", closed())
    scene.report("n2", STOPPED)
    assert isinstance(scene.only(), AttemptEnded)


def test_ranks_that_ended_well_before_the_stop_still_count():
    scene = Scene("submitted placed ordered started cancel")
    scene.report("n1", exited(0)).report("n2", exited(1))
    scene.settle()
    assert scene.job.clean


# ------------------------------------------------------------------------------- rows


def test_a_new_attempt_forgets_what_the_old_one_reported():
    scene = Scene("submitted placed")
    scene.all_report(PREPARED)
    before = set(scene.state.members)
    scene.tell("ended reclaimed requeued placed")
    assert before
    assert not scene.state.members


def test_an_archived_job_leaves_nothing():
    scene = Scene("submitted placed")
    scene.all_report(PREPARED)
    scene.tell("ended reclaimed failed archived")
    assert not scene.state.jobs
    assert not scene.state.members


def test_reports_read_after_the_archive_are_forgotten_an_hour_later():
    scene = Scene("submitted cancel cancelled archived")
    scene.report("n1", closed())
    assert scene.state.members
    scene.seq += 3700
    scene.tell("submitted cancel cancelled archived")
    assert not scene.state.members
