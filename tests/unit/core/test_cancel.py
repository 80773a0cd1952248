"""After a cancel nothing starts; only clean exits of all ranks still succeed."""

from dataclasses import replace

import pytest

from trainmaster.core.events import AttemptEnded, AttemptPlaced, Transition
from trainmaster.core.job import Void, evolve
from trainmaster.core.record import Job, JobState
from trainmaster.core.values import Cause, MemberSlot, RankExit
from trainmaster.testkit.builders import (
    START,
    a_history,
    a_spec,
    said,
    some_exits,
    told,
)

pytestmark = pytest.mark.unit


def after(words: str) -> Job:
    return told(a_history(words))


def outcome(job: Job, said_now: str | Transition) -> Job | Void:
    is_word = isinstance(said_now, str)
    event = said(job, said_now, spec=a_spec()) if is_word else said_now
    return evolve(job, event, START)


def reason(job: Job, said_now: str | Transition) -> str:
    result = outcome(job, said_now)
    return result.reason if isinstance(result, Void) else ""


def moved(job: Job, said_now: str | Transition) -> Job:
    result = outcome(job, said_now)
    assert isinstance(result, Job), result
    return result


@pytest.mark.parametrize(
    "words",
    [
        "submitted cancel",
        "submitted held cancel",
        "submitted placed ended reclaimed cancel",
    ],
)
def test_nothing_goes_on_after_a_cancel(words: str):
    job = after(words)
    assert job.state is JobState.SETTLING
    assert job.cancel is not None
    assert reason(job, "placed").endswith("does not follow settling")
    assert reason(job, "requeued") == "a cancel was requested"
    assert reason(job, "fenced") == "a cancel was requested"
    assert reason(replace(job, state=JobState.QUEUED), "placed") == (
        "a cancel was requested"
    )


@pytest.mark.parametrize("so_far", ["", "ordered", "ordered started"])
def test_a_cancel_stops_a_live_attempt_with_the_grace_of_its_job(so_far: str):
    spec = a_spec(stop_grace_seconds=3)
    job = told(a_history(f"submitted placed {so_far} cancel", spec=spec))
    assert job.state is JobState.STOPPING
    assert job.stop is not None
    assert (job.stop.cause, job.stop.grace_seconds) == (Cause.CANCELLED, 3.0)
    assert reason(job, "ordered") == "StartOrdered does not follow stopping"


def test_a_cancel_leaves_a_stop_that_was_ordered_before_as_it_is():
    job = after("submitted placed ordered started preempt cancel")
    assert job.stop is not None
    assert job.stop.cause is Cause.PREEMPTED
    assert job.cancel is not None


def test_the_first_cancel_is_the_one_that_is_remembered():
    job = after("submitted cancel")
    again = evolve(job, said(job, "cancel", spec=a_spec()), START.replace(year=2030))
    assert again == job


def success_after_cancel(exits: tuple[RankExit, ...]) -> str:
    job = after("submitted placed ordered started cancel")
    ended = moved(job, AttemptEnded(attempt=1, exits=exits))
    return reason(ended, "succeeded")


def test_a_cancelled_job_succeeds_only_if_every_rank_exited_0_by_itself():
    members = after("submitted placed").members
    refused = "a cancel was requested and not every rank had exited 0 by itself"
    clean = some_exits(members)
    assert success_after_cancel(clean) == ""
    for wrong in (
        (),
        clean[:1],
        (clean[0], clean[0]),
        some_exits(members, code=1),
        some_exits(members, signal=15),
        some_exits(members, by_us=True),
        some_exits(members, unknown=True),
        (*clean, RankExit(rank=1, code=1)),
    ):
        assert success_after_cancel(wrong) == refused, wrong


def test_a_cancelled_job_that_never_ran_or_was_lost_does_not_succeed():
    for words in ("submitted cancel", "submitted placed ordered cancel lost"):
        assert "a cancel was requested" in reason(after(words), "succeeded")


def test_no_ranks_are_no_clean_exit():
    slots = (MemberSlot(node="n1"),)
    job = told([*a_history("submitted"), AttemptPlaced(attempt=1, members=slots)])
    assert not moved(job, AttemptEnded(attempt=1)).clean
