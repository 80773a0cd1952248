"""Which checkpoint an attempt begins at, and in which words that is said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.checkpoint_manager.scenes import (
    CLEAN,
    DIRECTORY,
    ELSEWHERE,
    SETTLED,
    after,
    choices,
    chosen,
    decide,
    folded,
    found,
    moved,
    saving,
    torn,
    whole,
)

from trainmaster.checkpoint_manager.wants import Phase
from trainmaster.core.messages import ScannedCheckpoint
from trainmaster.core.notes import CheckpointVerified
from trainmaster.core.values import RestorePoint
from trainmaster.testkit.builders import a_history, a_log, an_entry

pytestmark = pytest.mark.unit


def test_the_newest_whole_checkpoint_is_chosen():
    choice = chosen(after(SETTLED), found(whole(500), whole(400)))
    assert choice.restore == RestorePoint(
        path=f"{DIRECTORY}/step-000500", step=500, digest="digest-500"
    )
    assert choice.reason == "Resuming from step 500, verified 09:58:02."
    assert choice.attempt == 1
    assert not choice.rejected


def test_a_torn_one_is_named_with_what_is_wrong_and_where_it_went():
    scan = found(whole(500), torn(600), aside=moved(torn(600)))
    choice = chosen(after(SETTLED), scan)
    assert choice.restore is not None
    assert choice.restore.step == 500
    assert choice.reason == (
        "Not resuming from step 600: weights.npy has 1,024 of 4,096 bytes. "
        "Using step 500, verified 09:58:02. Moved to .tm-aside/step-000600."
    )
    (rejected,) = choice.rejected
    assert rejected.path == f"{DIRECTORY}/step-000600"
    assert rejected.moved_to == f"{DIRECTORY}/.tm-aside/step-000600"
    assert rejected.reason == "weights.npy has 1,024 of 4,096 bytes"


def test_the_time_of_the_verification_is_that_of_its_note():
    entries = a_log(a_history(SETTLED, spec=saving()))
    note = CheckpointVerified(
        attempt=1, path=f"{DIRECTORY}/step-000500", step=500, digest="digest-500"
    )
    state = folded([*entries, an_entry(note, seq=65)])
    assert "verified 00:01:05" in chosen(state, found(whole(500))).reason
    # written anew since then: what was verified is gone
    again = chosen(state, found(whole(500, digest="other")))
    assert "verified 09:58:02" in again.reason


def test_nothing_saved_means_from_the_beginning():
    choice = chosen(after(SETTLED), found())
    assert choice.restore is None
    assert choice.reason == "No checkpoint was saved: starting from the beginning."


def test_only_torn_ones_mean_from_the_beginning():
    scan = found(torn(100), aside=moved(torn(100)))
    choice = chosen(after(SETTLED), scan)
    assert choice.restore is None
    assert choice.reason == (
        "Not resuming from step 100: weights.npy has 1,024 of 4,096 bytes. "
        "No other checkpoint is whole: starting from the beginning. "
        "Moved to .tm-aside/step-000100."
    )


def test_many_torn_ones_are_counted_not_listed():
    many = [torn(step) for step in range(600, 1600, 100)]
    scan = found(whole(500), *many, aside=moved(*many))
    choice = chosen(after(SETTLED), scan)
    assert "step 1500: " in choice.reason
    assert "7 more" in choice.reason
    assert len(choice.reason) < 600
    assert len(choice.rejected) == 10


def test_an_older_torn_one_is_set_aside_without_many_words():
    scan = found(torn(400), whole(500), aside=moved(torn(400)))
    choice = chosen(after(SETTLED), scan)
    assert choice.reason == "Resuming from step 500, verified 09:58:02."
    assert [each.step for each in choice.rejected] == [400]


def test_nothing_is_chosen_while_a_torn_one_is_in_the_way():
    assert not choices(decide(after(SETTLED), found(whole(500), torn(600))))


@pytest.mark.parametrize(
    "words",
    [
        pytest.param("submitted placed ordered started", id="while it runs"),
        pytest.param(
            "submitted placed ordered started ended reclaimed:n1", id="without proof"
        ),
        pytest.param(f"{SETTLED} cancel", id="after a cancel"),
        pytest.param(f"{SETTLED} chosen", id="twice"),
        pytest.param(f"{SETTLED} chosen requeued", id="when it is queued again"),
        pytest.param(CLEAN, id="when it is done"),
        pytest.param(f"{SETTLED} failed", id="when it failed"),
    ],
)
def test_nothing_is_chosen(words: str):
    assert not choices(decide(after(words), found(whole(500))))


def test_nothing_is_chosen_when_the_retries_are_used_up_without_progress():
    spec = saving().model_copy(update={"retries_max": 1})
    words = f"{SETTLED} chosen requeued placed ordered started ended reclaimed"
    state = after(words, spec=spec)
    assert not choices(decide(state, found(attempt=2)))
    # progress gives all retries back
    assert choices(decide(state, found(whole(500), attempt=2)))


def test_nothing_is_chosen_when_the_scan_itself_proves_success():
    spec = saving().model_copy(
        update={"success": saving().success.model_copy(update={"step": 500})}
    )
    state = after(SETTLED, spec=spec)
    assert not choices(decide(state, found(whole(500))))
    assert choices(decide(state, found(whole(400))))


@pytest.mark.parametrize("phase", [Phase.WATCH, Phase.CLOSING])
def test_only_a_scan_after_the_last_proof_counts(phase: Phase):
    scan = found(whole(500), phase=phase)
    assert not choices(decide(after(SETTLED), scan))


def test_a_scan_of_an_older_attempt_says_nothing():
    words = f"{SETTLED} chosen requeued placed ordered started ended reclaimed"
    state = after(words)
    assert not decide(state, found(whole(500), attempt=1)).groups
    assert choices(decide(state, found(whole(500), attempt=2)))


# ------------------------------------------------------------------- resuming at first


def resuming(words: str = "submitted", place: str = ELSEWHERE):
    return after(words, spec=saving(resume_from=place))


def test_a_first_attempt_begins_where_it_was_told():
    base = whole(900, path=f"{ELSEWHERE}/step-000900")
    scan = found(phase=Phase.RESUME, attempt=0, origin=(base,))
    choice = chosen(resuming(), scan)
    assert choice.restore is not None
    assert choice.restore.path == base.path
    assert choice.attempt == 0
    assert choice.reason == (
        f"Resuming from step 900 of {ELSEWHERE}/step-000900, verified 09:58:02."
    )


@pytest.mark.parametrize(
    "origin", [(), (torn(900, path=f"{ELSEWHERE}/step-000900"),)], ids=["none", "torn"]
)
def test_a_job_does_not_begin_elsewhere_than_told(
    origin: tuple[ScannedCheckpoint, ...],
):
    scan = found(phase=Phase.RESUME, attempt=0, origin=origin)
    assert not choices(decide(resuming(), scan))


@pytest.mark.parametrize("words", ["submitted held", "submitted chosen"])
def test_a_first_attempt_is_not_chosen_for(words: str):
    base = whole(900, path=f"{ELSEWHERE}/step-000900")
    scan = found(phase=Phase.RESUME, attempt=0, origin=(base,))
    assert not choices(decide(resuming(words), scan))


def test_resuming_from_the_own_empty_directory_begins_anew():
    scan = found(phase=Phase.RESUME, attempt=0)
    choice = chosen(resuming(place=DIRECTORY), scan)
    assert choice.restore is None
    assert choice.reason == "No checkpoint was saved: starting from the beginning."


def test_going_back_in_the_own_directory_sets_aside_what_is_newer():
    state = resuming(place=f"{DIRECTORY}/step-000300")
    scan = found(whole(300), whole(400), phase=Phase.RESUME, attempt=0)
    assert not choices(decide(state, scan))
    gone = found(
        whole(300), whole(400), phase=Phase.RESUME, attempt=0, aside=moved(whole(400))
    )
    choice = chosen(state, gone)
    assert choice.restore is not None
    assert choice.restore.step == 300
    assert choice.reason == (
        "Not resuming from step 400: it is newer than the chosen one. "
        "Using step 300, verified 09:58:02. Moved to .tm-aside/step-000400."
    )


def test_a_retry_without_checkpoints_goes_back_to_where_the_first_one_began():
    base = whole(900, path=f"{ELSEWHERE}/step-000900")
    words = "submitted chosen placed ordered started ended reclaimed"
    choice = chosen(resuming(words), found(origin=(base,)))
    assert choice.restore is not None
    assert choice.restore.path == base.path


def test_own_checkpoints_win_over_where_the_first_attempt_began():
    base = whole(900, path=f"{ELSEWHERE}/step-000900")
    words = "submitted chosen placed ordered started ended reclaimed"
    choice = chosen(resuming(words), found(whole(10), origin=(base,)))
    assert choice.restore is not None
    assert choice.restore.step == 10


# -------------------------------------------------------------------------- for ever


@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.booleans()),
        unique_by=lambda item: item[0],
        max_size=12,
    )
)
def test_what_is_chosen_is_whole_and_nothing_newer_stays(
    disk: list[tuple[int, bool]],
):
    checkpoints = [whole(step) if good else torn(step) for step, good in disk]
    everything = moved(*checkpoints)
    choice = chosen(after(SETTLED), found(*checkpoints, aside=everything))
    good = [step for step, is_good in disk if is_good]
    best = choice.restore.step if choice.restore else None
    assert best == max(good, default=None)
    gone = {each.step for each in choice.rejected}
    assert gone == {step for step, is_good in disk if not is_good}
