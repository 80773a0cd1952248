"""Which jobs are looked at, when, and who is asked."""

import pytest
from tests.unit.checkpoint_manager.scenes import (
    CLEAN,
    DIRECTORY,
    ELSEWHERE,
    MANAGER,
    SETTLED,
    after,
    folded,
    node,
    saving,
)

from trainmaster.checkpoint_manager.settings import NODES_TRIED_MAX
from trainmaster.checkpoint_manager.state import State
from trainmaster.checkpoint_manager.store import tables
from trainmaster.checkpoint_manager.wants import Phase, wanted
from trainmaster.core.facts import NodeLost, NodeRegistered
from trainmaster.core.notes import CheckpointRejected, CheckpointVerified
from trainmaster.testkit.builders import KEY, a_history, a_log, a_spec, an_entry

pytestmark = pytest.mark.unit


def phase_after(words: str, **checkpoint: str) -> Phase | None:
    want = wanted(after(words, spec=saving(**checkpoint)), KEY)
    return want.phase if want else None


@pytest.mark.parametrize(
    ("words", "phase"),
    [
        ("submitted", None),
        ("submitted placed ordered", None),
        ("submitted placed ordered started", Phase.WATCH),
        ("submitted placed ordered started stop", Phase.WATCH),
        ("submitted placed ordered started ended", Phase.CLOSING),
        ("submitted placed ordered started ended reclaimed:n1", Phase.CLOSING),
        (SETTLED, Phase.FINAL),
        (CLEAN, Phase.FINAL),
        (f"{SETTLED} chosen", None),
        (f"{SETTLED} chosen requeued", None),
        (f"{CLEAN} succeeded", None),
        (f"{CLEAN} succeeded archived", None),
        ("submitted cancel", None),
    ],
)
def test_a_job_is_looked_at_when_it_saves_and_when_it_is_settled(
    words: str, phase: Phase | None
):
    assert phase_after(words) is phase


@pytest.mark.parametrize(
    ("words", "phase"),
    [
        ("submitted", Phase.RESUME),
        ("submitted held", None),
        ("submitted chosen", None),
        ("submitted chosen placed", None),
    ],
)
def test_a_first_attempt_is_looked_for_when_it_should_begin_elsewhere(
    words: str, phase: Phase | None
):
    assert phase_after(words, resume_from=ELSEWHERE) is phase


def test_a_job_without_a_directory_is_never_looked_at():
    assert wanted(after(SETTLED, spec=a_spec()), KEY) is None
    assert wanted(after("submitted placed ordered started", spec=a_spec()), KEY) is None


def registered(*names: str, pool: str = "local"):
    return [
        an_entry(NodeRegistered(), key=node(name, pool), seq=seq)
        for seq, name in enumerate(names, 1)
    ]


def test_the_nodes_of_the_job_are_asked_first():
    entries = a_log(a_history(SETTLED, spec=saving()))
    state = folded([*registered("n9", "n2", "n1"), *entries])
    want = wanted(state, KEY)
    assert want is not None
    assert want.nodes == (node("n1"), node("n2"), node("n9"))


def test_a_silent_node_and_one_of_another_pool_are_not_asked():
    entries = a_log(a_history(SETTLED, spec=saving()))
    lost = an_entry(NodeLost(), key=node("n1"), seq=9)
    state = folded(
        [*registered("n1", "n2"), *registered("x1", pool="other"), lost, *entries]
    )
    want = wanted(state, KEY)
    assert want is not None
    assert want.nodes == (node("n2"),)


def test_a_round_asks_a_bounded_number_of_nodes():
    names = [f"n{number}" for number in range(100)]
    entries = a_log(a_history(SETTLED, spec=saving()))
    want = wanted(folded([*registered(*names), *entries]), KEY)
    assert want is not None
    assert len(want.nodes) == NODES_TRIED_MAX


def test_a_lost_node_is_another_question_only_in_a_hurry():
    def asked(words: str) -> list[object]:
        entries = a_log(a_history(words, spec=saving()))
        lost = an_entry(NodeLost(), key=node("n1"), seq=99)
        both = folded(entries), folded([*entries, lost])
        wants = [wanted(state, KEY) for state in both]
        return [want.identity for want in wants if want]

    watching = asked("submitted placed ordered started")
    assert watching[0] == watching[1]
    hurried = asked(SETTLED)
    assert hurried[0] != hurried[1]


# ----------------------------------------------------------------------------- memory


def a_full_state() -> State:
    notes = [
        CheckpointVerified(attempt=1, path=f"{DIRECTORY}/a.b/1", step=1, digest="d"),
        CheckpointRejected(attempt=1, path=f"{DIRECTORY}/a.b/2", step=2, reason="torn"),
    ]
    entries = a_log(a_history(SETTLED, spec=saving()))
    lost = an_entry(NodeLost(), key=node("n2"), seq=3)
    return folded([*entries, *registered("n1", "n2"), lost, *a_log(notes, first=50)])


def test_what_was_saved_comes_back_the_same():
    state = a_full_state()
    description = tables()
    changed = [
        *(("job", key) for key in state.jobs),
        *(("node", key) for key in state.nodes),
        *(("catalogue", key) for key in state.catalogues),
    ]
    documents: dict[str, dict[str, str]] = {}
    for (name, key), body in description.dump(state, changed).items():
        assert body is not None
        documents.setdefault(name, {})[key] = body
    loaded = description.load(documents)
    assert loaded.jobs == state.jobs
    assert loaded.nodes == state.nodes
    assert loaded.catalogues == state.catalogues


def test_replaying_the_log_gives_the_same_state():
    assert a_full_state().catalogues == a_full_state().catalogues


def test_an_archived_job_leaves_nothing_behind():
    entries = a_log(a_history(f"{CLEAN} succeeded", spec=saving()))
    verified = CheckpointVerified(attempt=1, path="/c/1", step=1, digest="d")
    state = folded([*entries, an_entry(verified, seq=50)])
    (archived,) = a_log(a_history(f"{CLEAN} succeeded archived", spec=saving()))[-1:]
    changed = set(MANAGER.fold(state, archived))
    assert changed == {("job", KEY), ("catalogue", KEY)}
    assert not state.jobs
    assert not state.catalogues


def test_a_late_note_about_an_archived_job_is_ignored():
    state = after(f"{CLEAN} succeeded archived")
    late = CheckpointVerified(attempt=1, path="/c/1", step=1, digest="d")
    assert not tuple(MANAGER.fold(state, an_entry(late, seq=99)))
    assert not state.catalogues
