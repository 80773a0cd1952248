"""What is remarked about checkpoints: each thing once, under one id."""

from dataclasses import replace

import pytest
from tests.unit.checkpoint_manager.scenes import (
    CLEAN,
    DIRECTORY,
    ELSEWHERE,
    MANAGER,
    SETTLED,
    after,
    decide,
    found,
    moved,
    said,
    saving,
    torn,
    whole,
)

from trainmaster.checkpoint_manager.settings import CHECKPOINTS_MAX
from trainmaster.checkpoint_manager.state import State
from trainmaster.checkpoint_manager.wants import Blind, Finding, Phase, Scanned
from trainmaster.core.events import CheckpointChosen
from trainmaster.core.messages import ScannedCheckpoint
from trainmaster.core.notes import (
    CheckpointRejected,
    CheckpointsScanned,
    CheckpointVerified,
)
from trainmaster.testkit.builders import KEY, an_entry

pytestmark = pytest.mark.unit
RUNNING = "submitted placed ordered started"


def watched(*checkpoints: ScannedCheckpoint, attempt: int = 1) -> Scanned:
    return found(*checkpoints, phase=Phase.WATCH, attempt=attempt)


def store(state: State, *scans: Finding, seq: int = 100) -> list[str]:
    """Store what is decided, as the log would; returns the causes."""
    causes: list[str] = []
    for group in decide(state, *scans).groups:
        for number, write in enumerate(group, seq):
            causes.append(write.cause)
            entry = an_entry(write.event, key=KEY, seq=number)
            tuple(MANAGER.fold(state, entry))
    return causes


def test_a_new_whole_checkpoint_is_verified():
    (note,) = said(decide(after(RUNNING), watched(whole(100))))
    assert note == CheckpointVerified(
        attempt=1,
        path=f"{DIRECTORY}/step-000100",
        step=100,
        format="plain",
        files=2,
        bytes=4096,
        digest="digest-100",
    )


def test_nothing_is_said_twice():
    state = after(RUNNING)
    assert len(store(state, watched(whole(100)))) == 1
    assert not decide(state, watched(whole(100))).groups
    assert len(said(decide(state, watched(whole(100), whole(200))))) == 1


def test_deciding_again_says_the_same_under_the_same_cause():
    state = after(RUNNING)
    assert decide(state, watched(whole(100))) == decide(state, watched(whole(100)))


def test_a_checkpoint_with_other_content_is_verified_again():
    state = after(RUNNING)
    first = store(state, watched(whole(100)))
    second = store(state, watched(whole(100, digest="other")))
    back = store(state, watched(whole(100)))
    assert len({*first, *second, *back}) == 3


def test_a_checkpoint_that_was_torn_and_is_whole_again_gets_an_id_of_its_own():
    state = after(CLEAN)
    store(state, found())
    causes = store(state, found(whole(100)))
    causes += store(state, found(torn(100)))
    causes += store(state, found(whole(100)))
    assert len(set(causes)) == 3


def test_a_torn_one_is_normal_while_somebody_writes():
    assert not decide(after(RUNNING), watched(torn(100))).groups


def test_a_torn_one_is_rejected_once_when_nobody_writes():
    state = after(CLEAN)
    note, _ = said(decide(state, found(torn(100))))
    assert note == CheckpointRejected(
        attempt=1,
        path=f"{DIRECTORY}/step-000100",
        step=100,
        reason="weights.npy has 1,024 of 4,096 bytes",
    )
    store(state, found(torn(100)))
    assert not decide(state, found(torn(100))).groups


def test_remarks_and_choice_are_stored_together():
    scan = found(whole(100), torn(200), aside=moved(torn(200)))
    (group,) = decide(after(SETTLED), scan).groups
    kinds = [type(write.event) for write in group]
    assert kinds == [
        CheckpointVerified,
        CheckpointRejected,
        CheckpointsScanned,
        CheckpointChosen,
    ]
    rejected = group[1].event
    assert isinstance(rejected, CheckpointRejected)
    assert rejected.moved_to == f"{DIRECTORY}/.tm-aside/step-000200"


def test_every_scan_is_answered_so_that_it_is_no_fact_any_more():
    news = decide(after(RUNNING), watched(whole(100)))
    assert [(a.fact, a.group) for a in news.answers] == [("scan:0", 0)]
    nothing = decide(after(RUNNING), watched())
    assert [(a.fact, a.group) for a in nothing.answers] == [("scan:0", -1)]
    unknown = decide(State(), watched(whole(100)))
    assert [(a.fact, a.group) for a in unknown.answers] == [("scan:0", -1)]


def test_a_job_moves_once_in_a_decision():
    decision = decide(after(SETTLED), found(whole(100)), found(whole(100)))
    assert len(decision.groups) == 1
    assert [answer.fact for answer in decision.answers] == ["scan:0"]


def test_a_clean_job_gets_its_evidence_without_a_choice():
    notes = said(decide(after(CLEAN), found(whole(100))))
    assert [type(note) for note in notes] == [CheckpointVerified, CheckpointsScanned]


def test_the_last_look_is_said_once_for_each_attempt():
    state = after(CLEAN)
    last = CheckpointsScanned(attempt=1, whole=2, step=200)
    scan = found(whole(100), whole(200), torn(300))
    assert said(decide(state, scan))[-1] == last
    store(state, scan)
    assert not decide(state, scan).groups


@pytest.mark.parametrize(
    ("words", "phase"),
    [
        pytest.param(SETTLED, Phase.CLOSING, id="a scan that began before"),
        pytest.param("submitted placed ordered started ended", Phase.FINAL, id="late"),
    ],
)
def test_a_look_before_the_last_proof_is_not_the_last(words: str, phase: Phase):
    assert not decide(after(words), found(phase=phase)).groups


def test_a_whole_directory_is_one_bounded_group():
    checkpoints = [whole(step) for step in range(1, CHECKPOINTS_MAX + 101)]
    (group,) = decide(after(SETTLED), found(*checkpoints)).groups
    assert len(group) == CHECKPOINTS_MAX + 2
    steps = [w.event.step for w in group if isinstance(w.event, CheckpointVerified)]
    assert steps == list(range(101, CHECKPOINTS_MAX + 101))


def test_the_catalogue_forgets_the_lowest_steps_first():
    state = after(RUNNING)
    store(state, watched(*(whole(step) for step in range(1, CHECKPOINTS_MAX + 1))))
    store(state, watched(whole(CHECKPOINTS_MAX + 1)))
    known = state.catalogues[KEY].known()
    assert len(known) == CHECKPOINTS_MAX
    assert whole(1).path not in known
    assert state.catalogues[KEY].evidence.verified_step == CHECKPOINTS_MAX + 1


@pytest.mark.parametrize(
    ("origin", "reason"),
    [
        ((), "there is no checkpoint"),
        (
            (torn(9, path=f"{ELSEWHERE}/step-9"),),
            "weights.npy has 1,024 of 4,096 bytes",
        ),
    ],
    ids=["none", "torn"],
)
def test_a_job_that_cannot_begin_where_it_should_says_why_once(
    origin: tuple[ScannedCheckpoint, ...], reason: str
):
    state = after("submitted", spec=saving(resume_from=ELSEWHERE))
    scan = found(phase=Phase.RESUME, attempt=0, origin=origin)
    (note,) = said(decide(state, scan))
    assert isinstance(note, CheckpointRejected)
    assert note.reason == reason
    store(state, scan)
    assert not decide(state, scan).groups


def test_that_nobody_can_look_is_said_once_and_chooses_nothing():
    state = after(SETTLED)
    blind = Blind(key=KEY, attempt=1, place=DIRECTORY, reason="n1 cannot scan")
    (note,) = said(decide(state, blind))
    assert note == CheckpointRejected(
        attempt=1, path=DIRECTORY, reason="n1 cannot scan"
    )
    store(state, blind)
    assert not decide(state, blind).groups
    assert not decide(state, replace(blind, reason="n2 cannot scan")).groups
    # it is no checkpoint, so it is in nobody's way
    kinds = [type(event) for event in said(decide(state, found(whole(100))))]
    assert kinds == [CheckpointVerified, CheckpointsScanned, CheckpointChosen]


def test_a_checkpoint_of_somebody_else_is_no_evidence_of_this_job():
    state = after("submitted", spec=saving(resume_from=ELSEWHERE))
    base = whole(900, path=f"{ELSEWHERE}/step-000900")
    scan = found(phase=Phase.RESUME, attempt=0, origin=(base,))
    assert [type(event) for event in said(decide(state, scan))] == [CheckpointChosen]
