"""What is healthy passes; rules 4, 7, 8 and the order of the log are each broken."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from itertools import count

import pytest
from hypothesis import given, settings

from trainmaster.core.envelope import Entry
from trainmaster.core.events import (
    AttemptPlaced,
    AttemptReclaimed,
    AttemptTransition,
    PreemptRequested,
    Transition,
)
from trainmaster.core.job import Void, evolve
from trainmaster.core.record import FINAL, LIVE, Job, JobState
from trainmaster.core.spec import JobSpec
from trainmaster.testkit.builders import (
    LIVES,
    START,
    a_history,
    a_log,
)
from trainmaster.testkit.faults import letting, names, twisting
from trainmaster.testkit.rules import check_history, check_settled, voids
from trainmaster.testkit.sightings import Sighting
from trainmaster.testkit.strategies import logs

pytestmark = pytest.mark.unit

RUN = "submitted placed ordered started"
DONE = f"{RUN} completed reclaimed succeeded archived"
RETRIED = f"{RUN} ended reclaimed chosen requeued placed ordered started completed"


def a_told_log(words: str, spec: JobSpec | None = None) -> list[Entry]:
    return a_log(a_history(words, spec=spec))


def rules_of(found: Sequence[str]) -> set[str]:
    return {each.split(":")[0] for each in found}


# ---------------------------------------------------------------------- what is healthy


@pytest.mark.parametrize("state", JobState)
def test_a_log_may_end_in_any_state(state: JobState):
    assert check_history(a_told_log(LIVES[state])) == []


@pytest.mark.parametrize(
    "words",
    [
        DONE,
        f"{RETRIED} reclaimed succeeded archived",
        "submitted held released placed lost fenced placed lost failed reclaimed@1",
        f"{RUN} preempt completed reclaimed requeued cancel reclaimed cancelled",
        f"{RUN} cancel completed succeeded reclaimed archived",
        "submitted placed placed ended@2 started ordered@1 succeeded held",
    ],
)
def test_an_honest_history_breaks_nothing(words: str):
    assert check_history(a_told_log(words)) == []


@settings(max_examples=40, deadline=None)
@given(logs())
def test_no_honest_log_breaks_a_rule(log: list[Entry]):
    assert check_history(log) == []
    assert voids(log) == []


@settings(max_examples=40, deadline=None)
@given(logs(wild=True))
def test_no_log_at_all_makes_evolve_break_its_rules(log: list[Entry]):
    found = check_history(log)
    check_settled(log)
    assert rules_of(found).isdisjoint({"rule 4", "rule 6", "rule 8"})
    assert not names(found, "rule 1", "counts too")
    assert not names(found, "rule 3", "counts after")
    assert not names(found, "rule 5", "the job says")


def test_what_is_void_is_named_with_its_reason():
    assert voids(a_told_log("submitted started@0")) == [
        "job job-1, JOBS 2 attempt_started: AttemptStarted does not follow queued"
    ]


# ------------------------------------------------------------------------------- rule 4


@pytest.mark.parametrize("late", ["ended@1", "started@1", "stop@1", "chosen@1"])
def test_rule_4_an_older_attempt_that_changes_something_is_found(late: str):
    log = a_told_log(f"{RUN} ended fenced placed ordered {late}")
    assert check_history(log) == []
    found = check_history(log, evolve=letting(AttemptTransition))
    assert names(found, "rule 4", "attempt 1 is not 2")


def test_rule_4_a_number_left_out_is_found():
    log = a_told_log("submitted placed@2")
    assert check_history(log) == []
    found = check_history(log, evolve=letting(AttemptPlaced))
    assert names(found, "rule 4", "attempt 2 is not 1")


def test_rule_4_a_reclaim_that_does_more_than_give_back_is_found():
    def go_on(_before: Job, after: Job) -> Job:
        return replace(after, state=JobState.QUEUED)

    log = a_told_log(f"{RUN} ended reclaimed")
    found = check_history(log, evolve=twisting(AttemptReclaimed, go_on))
    assert names(found, "rule 4", "does more than give back")


# ------------------------------------------------------------------------------- rule 7


@pytest.mark.parametrize("state", [JobState.HELD, *sorted(FINAL)])
def test_rule_7_a_job_that_is_over_or_held_is_settled(state: JobState):
    assert check_settled(a_told_log(LIVES[state])) == []


@pytest.mark.parametrize("state", [*sorted(LIVE), JobState.SETTLING])
def test_rule_7_a_job_that_stays_on_the_way_is_found(state: JobState):
    found = check_settled(a_told_log(LIVES[state]))
    assert found == [f"rule 7: job job-1: came to rest in {state}"]


def test_rule_7_a_queued_job_waits_visibly_or_is_found():
    log = a_told_log("submitted")
    silent = ["rule 7: job job-1: waits and nobody says why"]
    assert check_settled(log) == silent
    assert check_settled(log, waiting={"job-1": [""]}) == silent
    assert check_settled(log, waiting={"job-2": ["no node is free"]}) == silent
    assert check_settled(log, waiting={"job-1": ["no node is free"]}) == []


def test_rule_7_an_accepted_submission_that_vanished_is_found():
    log = a_told_log(LIVES[JobState.FAILED])
    assert check_settled(log, accepted=["job-1"]) == []
    assert check_settled(log, accepted=["job-1", "job-2"]) == [
        "rule 7: job job-2: was accepted and is not on the log"
    ]


def test_rule_7_events_without_a_submission_are_found():
    assert check_settled(a_told_log("cancel")) == [
        "rule 7: job job-1: has events but was never submitted"
    ]


def test_rule_7_a_process_nobody_waits_for_is_found():
    spawn = Sighting(START, "job-1", 1, "n1", "spawn")
    over = a_told_log(LIVES[JobState.FAILED])
    assert check_settled(over, [spawn]) == [
        "rule 7: attempt 1 of job job-1 on n1: 1 processes left, nobody waits"
    ]
    assert check_settled(over, [spawn, spawn._replace(what="gone")]) == []
    assert check_settled(a_told_log(f"{RUN} lost failed"), [spawn]) == []
    stranger = spawn._replace(job="job-7")
    assert names(check_settled(over, [stranger]), "rule 7", "job-7", "left")


# ------------------------------------------------------------------------------- rule 8


def test_rule_8_a_reducer_that_remembers_is_found():
    calls = count()

    def forgetful(job: Job, event: Transition, at: datetime) -> Job | Void:
        outcome = evolve(job, event, at)
        if isinstance(outcome, Job):
            return replace(outcome, priority=next(calls))
        return outcome

    found = check_history(a_told_log(RUN), evolve=forgetful)
    assert names(found, "rule 8", "replay differs in ['priority']")


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("grace_seconds", float("nan"), "reads back differently"),
        ("attempt", 2**40, "cannot be read back: 1 fields"),
        ("for_job", "\ud800", "cannot be written"),
    ],
)
def test_rule_8_an_event_without_a_true_wire_form_is_found(
    field: str, value: object, problem: str
):
    odd = PreemptRequested(attempt=1).model_copy(update={field: value})
    found = check_history(a_log([*a_history(RUN), odd]))
    assert names(found, "rule 8", f"JOBS 5 preempt_requested: {problem}")


# -------------------------------------------------------------------------------- order


def test_a_stream_out_of_order_is_found():
    first, second, *rest = a_told_log(RUN)
    assert names(check_history([second, first, *rest]), "log", "JOBS 1 after 2")


def test_an_event_stored_twice_is_found():
    log = a_told_log(RUN)
    again = log[-1]._replace(seq=9)
    assert names(check_history([*log, again]), "log", log[-1].id, "2 times")
