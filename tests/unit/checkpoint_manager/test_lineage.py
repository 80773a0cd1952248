"""What was there before a job is no evidence for it, unless it goes on from there."""

from datetime import datetime, timedelta

import pytest
from tests.unit.checkpoint_manager.scenes import (
    DIRECTORY,
    MANAGER,
    after,
    choices,
    chosen,
    decide,
    found,
    said,
    saving,
    whole,
)

from trainmaster.checkpoint_manager.state import State
from trainmaster.checkpoint_manager.wants import Phase, Scanned
from trainmaster.core.messages import ScannedCheckpoint
from trainmaster.core.notes import CheckpointVerified
from trainmaster.core.spec import SuccessSpec
from trainmaster.testkit.builders import KEY, START, an_entry

pytestmark = pytest.mark.unit
RUNNING = "submitted placed ordered started"
PLACED_AT = START + timedelta(seconds=2)
"""Where `after` puts the placement of the first attempt."""
EARLIER, LATER = PLACED_AT - timedelta(hours=1), PLACED_AT + timedelta(seconds=1)


def saved(step: int, at: datetime) -> ScannedCheckpoint:
    return whole(step).model_copy(update={"saved_at": at})


def verified(state: State, *checkpoints: ScannedCheckpoint) -> list[tuple[int, int]]:
    """Say of which attempt and step the notes are that a scan leads to."""
    scan = found(*checkpoints, phase=Phase.WATCH)
    notes = [e for e in said(decide(state, scan)) if isinstance(e, CheckpointVerified)]
    return [(note.attempt, note.step) for note in notes]


def remember(state: State, scan: Scanned) -> None:
    for group in decide(state, scan).groups:
        for number, write in enumerate(group, 100):
            tuple(MANAGER.fold(state, an_entry(write.event, key=KEY, seq=number)))


def test_what_was_saved_before_the_first_attempt_is_of_no_attempt():
    state = after(RUNNING)
    assert verified(state, saved(600, EARLIER), saved(700, LATER)) == [
        (0, 600),
        (1, 700),
    ]


def test_what_was_there_before_is_neither_evidence_nor_progress():
    state = after(RUNNING)
    remember(state, found(saved(600, EARLIER), phase=Phase.WATCH))
    evidence = state.catalogues[KEY].evidence
    assert (evidence.verified, evidence.verified_step) == (False, 0)
    assert evidence.earlier_step == 600


def test_the_same_content_counts_once_the_job_has_saved_it_anew():
    """A training that repeats itself writes the same bytes at the same steps."""
    state = after(RUNNING)
    remember(state, found(saved(600, EARLIER), phase=Phase.WATCH))
    assert not verified(state, saved(600, EARLIER))
    assert verified(state, saved(600, LATER)) == [(1, 600)]
    remember(state, found(saved(600, LATER), phase=Phase.WATCH))
    assert state.catalogues[KEY].evidence.verified_step == 600
    assert not verified(state, saved(600, LATER))


def test_what_an_earlier_attempt_saved_is_of_the_job():
    words = f"{RUNNING} ended reclaimed chosen requeued placed ordered started"
    scan = found(saved(600, LATER), phase=Phase.WATCH, attempt=2)
    (note,) = said(decide(after(words), scan))
    assert isinstance(note, CheckpointVerified)
    assert note.attempt == 2


def test_a_node_that_tells_no_times_is_believed():
    assert verified(after(RUNNING), whole(600)) == [(1, 600)]


def test_a_checkpoint_in_the_own_directory_before_the_first_attempt_is_of_none():
    state = after("submitted", spec=saving(resume_from=DIRECTORY))
    scan = found(whole(600), phase=Phase.RESUME, attempt=0)
    (note,) = [
        e for e in said(decide(state, scan)) if isinstance(e, CheckpointVerified)
    ]
    assert note.attempt == 0
    assert chosen(state, scan).restore is not None


def test_a_retry_goes_on_from_what_was_there_before_all_the_same():
    """Only evidence is judged by origin: a framework would find it there as well."""
    state = after(f"{RUNNING} ended reclaimed")
    choice = chosen(state, found(saved(600, EARLIER)))
    assert choice.restore is not None
    assert choice.restore.step == 600


def test_an_older_run_does_not_keep_a_job_from_its_retry():
    spec = saving().model_copy(update={"success": SuccessSpec(step=600)})
    state = after(f"{RUNNING} ended reclaimed", spec=spec)
    assert choices(decide(state, found(saved(600, EARLIER))))
