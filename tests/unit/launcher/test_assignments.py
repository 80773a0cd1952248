"""ASSIGN is a function of job state: a table, and what holds in every life."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from tests.unit.launcher.scenes import Scene

from trainmaster.core import subjects
from trainmaster.core.envelope import Entry
from trainmaster.core.ids import JobKey
from trainmaster.core.messages import Assignment, Order
from trainmaster.core.record import FINAL, LIVE, JobState
from trainmaster.launcher.assignments import (
    assignments,
    owner_of,
    owners,
    wanted,
)
from trainmaster.launcher.policy import Launcher
from trainmaster.launcher.state import State
from trainmaster.testkit.builders import KEY, LIVES, a_job
from trainmaster.testkit.strategies import logs

pytestmark = pytest.mark.unit

some = settings(max_examples=40, deadline=None)

RETRIED = "submitted placed ordered started ended fenced placed"


def told(scene: Scene) -> dict[str, tuple[int, str]]:
    """Attempt and order by node."""
    return {
        subject.split(".")[3]: (assignment.attempt, assignment.order.value)
        for subject, assignment in assignments(scene.job).items()
    }


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("submitted", {}),
        ("submitted held", {}),
        ("submitted placed", {"n1": (1, "prepare"), "n2": (1, "prepare")}),
        (LIVES[JobState.STARTING], {"n1": (1, "start"), "n2": (1, "start")}),
        (LIVES[JobState.RUNNING], {"n1": (1, "start"), "n2": (1, "start")}),
        (LIVES[JobState.STOPPING], {"n1": (1, "stop"), "n2": (1, "stop")}),
        (LIVES[JobState.SETTLING], {"n1": (1, "close"), "n2": (1, "close")}),
        (f"{LIVES[JobState.SETTLING]} reclaimed:n1", {"n2": (1, "close")}),
        (f"{LIVES[JobState.SETTLING]} reclaimed requeued", {}),
        (
            LIVES[JobState.SETTLING] + " fenced",
            {"n1": (1, "close"), "n2": (1, "close")},
        ),
        (
            LIVES[JobState.SETTLING] + " failed",
            {"n1": (1, "close"), "n2": (1, "close")},
        ),
        (LIVES[JobState.SUCCEEDED], {}),
        (
            RETRIED,
            {
                "n1": (1, "close"),
                "n2": (1, "close"),
                "n3": (2, "prepare"),
                "n4": (2, "prepare"),
            },
        ),
        (
            f"{RETRIED}:n2,n3",
            {"n1": (1, "close"), "n2": (2, "prepare"), "n3": (2, "prepare")},
        ),
        (
            f"{RETRIED}:n2,n3 ended",
            {"n1": (1, "close"), "n2": (2, "close"), "n3": (2, "close")},
        ),
        (
            f"{RETRIED}:n2,n3 ended reclaimed@2:n2,n3",
            {"n1": (1, "close"), "n2": (1, "close")},
        ),
    ],
)
def test_what_each_node_is_told(words: str, expected: dict[str, tuple[int, str]]):
    assert told(Scene(words)) == expected


def test_a_start_tells_each_node_its_place_among_the_others():
    job = a_job(JobState.STARTING)
    starts = [each.start for each in assignments(job).values()]
    assert [start.node_rank for start in starts if start] == [0, 1]
    assert all(each.spec == job.spec for each in assignments(job).values())


def test_a_job_that_is_gone_wants_nothing():
    scene = Scene(f"{LIVES[JobState.SUCCEEDED]} archived")
    assert wanted(scene.state, KEY.job) == {}


def test_reports_change_no_assignment():
    scene = Scene("submitted placed")
    assert set(owners(scene.state, [("member", KEY)])) == {KEY.job}
    assert set(owners(scene.state, None)) == {KEY.job}
    member_only = [("member", subjects.parse("tm.member.p.n.j.1.prepared").key)]  # pyright: ignore[reportOptionalMemberAccess]
    assert set(owners(scene.state, member_only)) == set()


def test_a_subject_belongs_to_its_job():
    (subject, *_) = assignments(a_job(JobState.PLACED))
    assert owner_of(subject) == KEY.job


@some
@given(logs())
def test_what_is_told_to_a_node_never_goes_back(entries: list[Entry]):
    """An agent ignores a lower (attempt, order), except for a close."""
    launcher, state = Launcher(), State()
    history: dict[str, list[Assignment]] = {}
    for entry in entries:
        launcher.fold(state, entry)
        assert isinstance(entry.key, JobKey)
        for subject, assignment in wanted(state, entry.key.job).items():
            history.setdefault(subject, []).append(assignment)
    for told_in_turn in history.values():
        for before, after in pairwise(told_in_turn):
            lower = (after.attempt, after.order.rank) < (
                before.attempt,
                before.order.rank,
            )
            assert not lower or after.order is Order.CLOSE


@some
@given(logs())
def test_every_node_that_may_run_something_is_told(entries: list[Entry]):
    launcher, state = Launcher(), State()
    for entry in entries:
        launcher.fold(state, entry)
        for job in state.jobs.values():
            nodes = {subject.split(".")[3] for subject in assignments(job)}
            owed = {slot.node for slots in job.unreclaimed.values() for slot in slots}
            assert nodes == owed | (set(job.nodes) if job.state in LIVE else set())
            orders = {a.order for a in assignments(job).values()}
            if job.state in FINAL or job.state is JobState.SETTLING:
                assert orders <= {Order.CLOSE}
