"""Random lives of a job: what DESIGN section 2 says holds for ever, holds.

Written against `evolve` and the events alone, not against the checker of the testkit.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmaster.core.envelope import Entry
from trainmaster.core.events import (
    AttemptEnded,
    AttemptLost,
    AttemptPlaced,
    AttemptReclaimed,
    AttemptTransition,
    CancelRequested,
    Reprioritized,
    Requeued,
    StartOrdered,
    Succeeded,
    Transition,
    Verdict,
)
from trainmaster.core.ids import JobId, JobKey
from trainmaster.core.job import Void, evolve
from trainmaster.core.jobs import Jobs
from trainmaster.core.record import FINAL, Job, JobState
from trainmaster.testkit.builders import KEY, START, a_submitted, an_entry, told
from trainmaster.testkit.strategies import TRANSITION_KINDS, lives, logs, messages

pytestmark = pytest.mark.unit

some = settings(max_examples=50, deadline=None)
Happened = list[tuple[Job, Transition, Job | Void]]


def happened(events: Sequence[Transition]) -> Happened:
    """Each event with the job before it and what became of it."""
    job, steps = Job(key=KEY), Happened()
    for number, event in enumerate(events):
        outcome = evolve(job, event, START + timedelta(seconds=number))
        steps.append((job, event, outcome))
        job = job if isinstance(outcome, Void) else outcome
    return steps


def counting(events: Sequence[Transition]) -> list[tuple[Transition, Job]]:
    """The events that followed, each with the job after it."""
    steps = happened(events)
    return [(event, after) for _, event, after in steps if isinstance(after, Job)]


def fold(entries: Iterable[Entry]) -> Jobs:
    jobs = Jobs()
    for entry in entries:
        jobs.fold(entry)
    return jobs


wild = given(lives(wild=True))


@some
@wild
def test_rule_1_one_ending_per_attempt_counts(events: list[Transition]):
    endings = Counter(
        event.attempt
        for event, _ in counting(events)
        if isinstance(event, AttemptEnded | AttemptLost)
    )
    decided = {
        event.attempt
        for event, _ in counting(events)
        if isinstance(event, Requeued | Verdict)
    }
    assert set(endings.values()) <= {1}
    assert decided - {0} <= set(endings)


@some
@wild
def test_rule_3_a_final_state_is_final(events: list[Transition]):
    words = [event for event, _ in counting(events) if isinstance(event, Verdict)]
    assert len(words) <= 1
    finals = [after.state for _, after in counting(events) if after.state in FINAL]
    assert len(set(finals)) <= 1
    assert told(events).state in (finals or set(JobState) - FINAL)


@some
@wild
def test_rule_4_another_attempt_changes_nothing(events: list[Transition]):
    for before, event, after in happened(events):
        if not isinstance(event, AttemptTransition) or isinstance(after, Void):
            continue
        if isinstance(event, AttemptReclaimed):
            assert after == replace(before, unreclaimed=after.unreclaimed)
            assert after.unreclaimed != before.unreclaimed
        elif isinstance(event, AttemptPlaced):
            assert event.attempt == after.attempt == before.attempt + 1
        else:
            assert event.attempt == before.attempt


@some
@wild
def test_rule_5_a_charge_begins_with_a_place_and_ends_with_a_reclaim(
    events: list[Transition],
):
    charged = set[tuple[int, str]]()
    for event, after in counting(events):
        if isinstance(event, AttemptPlaced):
            charged |= {(event.attempt, member.node) for member in event.members}
        if isinstance(event, AttemptReclaimed):
            charged -= {(event.attempt, node) for node in event.nodes}
        theirs = {(n, m.node) for n, ms in after.unreclaimed.items() for m in ms}
        assert charged == theirs


@some
@wild
def test_rule_6_nothing_starts_after_a_cancel(events: list[Transition]):
    cancelled = False
    for event, after in counting(events):
        if isinstance(event, CancelRequested):
            cancelled = True
        if not cancelled:
            continue
        assert not isinstance(event, AttemptPlaced | StartOrdered | Requeued)
        assert after.state in FINAL | {JobState.STOPPING, JobState.SETTLING}
        if isinstance(event, Succeeded):
            assert after.ended is not None
            assert {exit_.rank for exit_ in after.ended.exits if exit_.clean}
            assert all(exit_.clean for exit_ in after.ended.exits)


@some
@given(lives())
def test_rule_6_a_cancel_is_never_lost(events: list[Transition]):
    job = told(events)
    outcome = evolve(job, CancelRequested(by="ada"), START)
    if job.state in FINAL | {JobState.NEW}:
        assert isinstance(outcome, Void)
    else:
        assert isinstance(outcome, Job)
        assert outcome.cancel is not None


@some
@given(logs(wild=True))
def test_rule_8_replaying_twice_gives_the_same_state(log: list[Entry]):
    assert fold(log) == fold(log)


@some
@given(logs(wild=True), st.data())
def test_rule_8_folding_in_any_pieces_gives_the_same_state(
    log: list[Entry], data: st.DataObject
):
    cuts = sorted(data.draw(st.sets(st.integers(0, len(log)), max_size=5)))
    jobs = Jobs()
    for start, end in zip([0, *cuts], [*cuts, len(log)], strict=True):
        # A restart in between: what was folded comes back from a table.
        restored = Jobs()
        for job in jobs.values():
            restored.restore(job)
        jobs = restored
        for entry in log[start:end]:
            jobs.fold(entry)
    assert jobs == fold(log)


@some
@given(logs(wild=True))
def test_rule_8_jobs_do_not_depend_on_their_neighbours(log: list[Entry]):
    together = fold(log)
    for key in {entry.key for entry in log}:
        assert isinstance(key, JobKey)
        alone = fold(entry for entry in log if entry.key == key)
        assert alone.get(key) == together.get(key)


@some
@given(logs(wild=True))
def test_jobs_are_found_by_state_and_by_id(log: list[Entry]):
    jobs = fold(log)
    for state in JobState:
        listed = list(jobs.in_state(state))
        assert sorted(j.id for j in listed) == sorted(
            j.id for j in jobs.values() if j.state is state
        )
        assert jobs.count(state) == len(listed)
    for entry in log:
        assert isinstance(entry.key, JobKey)
        assert jobs.by_id(entry.key.job) == jobs.get(entry.key)


@settings(max_examples=100, deadline=None)
@given(lives(), st.sampled_from(TRANSITION_KINDS).flatmap(messages))
def test_evolve_is_total_and_leaves_its_job_alone(
    events: list[Transition], event: Transition
):
    job = told(events)
    copy = replace(job)
    outcome = evolve(job, event, START)
    assert job == copy
    assert outcome == evolve(job, event, START)
    if isinstance(outcome, Void):
        assert outcome.reason
    else:
        assert outcome.key == job.key


@some
@given(lives())
def test_a_life_of_words_that_follow_has_no_void(events: list[Transition]):
    assert len(counting(events)) == len(events)


def test_jobs_of_a_state_come_in_the_order_they_came_to_it():
    first, second = (JobKey("default", JobId(name)) for name in ("job-1", "job-2"))
    queued = [an_entry(a_submitted(), key=first), an_entry(a_submitted(), key=second)]
    again = an_entry(Reprioritized(priority=9), key=first)
    jobs = fold([*queued, again])
    listed = [job.key for job in jobs.in_state(JobState.QUEUED)]
    assert listed == [first, second]
    assert jobs[first].priority == 9
