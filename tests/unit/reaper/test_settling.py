"""What the reaper waits for before it judges a settling job, and for how long."""

from datetime import timedelta

import pytest
from tests.unit.reaper.scenes import (
    CRASHED,
    after,
    decide,
    folded,
    said,
    saving,
)

from trainmaster.core.events import AttemptReclaimed, Event, Failed, Succeeded
from trainmaster.core.notes import CheckpointsScanned, CheckpointVerified
from trainmaster.core.spec import SuccessSpec
from trainmaster.testkit.builders import KEY, START, a_history, a_log, an_entry

pytestmark = pytest.mark.unit
SOON, LATE = 10, 70
"""Seconds after START: the last proof comes at 6."""
NO_RETRIES = saving(retries_max=0, success=SuccessSpec(step=500))


def kinds(events: list[Event]) -> list[type[Event]]:
    return [type(event) for event in events]


def test_a_job_whose_retries_are_used_is_not_failed_before_the_last_look():
    state = after(CRASHED, spec=NO_RETRIES)
    assert not said(state, seconds=SOON)
    looked = after(CRASHED, CheckpointsScanned(attempt=1), spec=NO_RETRIES)
    assert kinds(said(looked, seconds=SOON)) == [Failed]


def test_what_the_last_look_proves_decides():
    notes = (CheckpointVerified(attempt=1, step=500), CheckpointsScanned(attempt=1))
    state = after(CRASHED, *notes, spec=NO_RETRIES)
    assert kinds(said(state, seconds=SOON)) == [Succeeded]


def test_it_wakes_at_the_deadline_of_the_last_look_and_then_judges_without():
    state = after(CRASHED, spec=NO_RETRIES)
    proven_at = START + timedelta(seconds=6)
    wake_at = decide(state, seconds=SOON).wake_at
    assert wake_at == proven_at + timedelta(seconds=60)
    assert kinds(said(state, seconds=LATE)) == [Failed]


def test_a_late_proof_leaves_the_full_time_for_the_last_look():
    *lives, reclaimed = a_history(CRASHED, spec=NO_RETRIES)
    assert isinstance(reclaimed, AttemptReclaimed)
    state = folded([*a_log(lives), an_entry(reclaimed, key=KEY, seq=100)])
    assert not said(state, seconds=150)
    assert kinds(said(state, seconds=160)) == [Failed]


def test_a_checkpoint_from_before_the_job_is_no_evidence():
    notes = (CheckpointVerified(attempt=0, step=500), CheckpointsScanned(attempt=1))
    state = after(CRASHED, *notes, spec=NO_RETRIES)
    assert kinds(said(state, seconds=SOON)) == [Failed]


def test_a_late_note_about_an_archived_job_is_not_kept():
    words = f"{CRASHED} failed archived"
    state = after(words, CheckpointVerified(attempt=1, step=500))
    assert not state.evidence
