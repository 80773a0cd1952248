"""The builders say what they promise; the strategies reach all there is."""

from collections.abc import Iterator

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from trainmaster.core.events import REGISTRY, Event, Transition
from trainmaster.core.record import JobState
from trainmaster.core.spec import spec_digest
from trainmaster.testkit import rules
from trainmaster.testkit.builders import (
    LIVES,
    WORDS,
    a_history,
    a_job,
    a_log,
    a_placed,
    a_spec,
    a_submitted,
    told,
)
from trainmaster.testkit.strategies import ANY_EVENT, lives, messages

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("state", JobState)
def test_a_job_is_in_the_state_that_was_asked_for(state: JobState):
    assert a_job(state).state is state
    assert rules.voids(a_log(a_history(LIVES[state]))) == []


def test_a_history_is_told_in_words():
    kinds = [event.kind for event in a_history("submitted placed ended")]
    assert kinds == ["submitted", "attempt_placed", "attempt_ended"]


def test_words_carry_what_a_service_would_put_in():
    events = a_history("submitted placed ended reclaimed:n2 reclaimed requeued placed")
    assert [getattr(event, "attempt", 0) for event in events] == [0, 1, 1, 1, 1, 1, 2]
    assert [getattr(event, "nodes", ()) for event in events[3:5]] == [("n2",), ("n1",)]
    assert events[1] == a_placed(1, ("n1", "n2"))


def test_a_word_may_speak_of_another_attempt():
    [_, event] = a_history("submitted ended@3")
    assert getattr(event, "attempt", 0) == 3


def test_every_transition_has_a_word():
    kinds = {type(event) for word in WORDS for event in a_history(f"submitted {word}")}
    assert kinds == {kind for kind in ANY_EVENT if issubclass(kind, Transition)}


def test_a_spec_is_changed_by_name_and_submitted_with_its_digest():
    spec = a_spec(nodes=5)
    assert (spec.nodes, spec.ranks) == (5, 5)
    assert a_submitted(spec).spec_digest == spec_digest(spec)


def test_a_log_is_numbered_and_timed():
    log = a_log(a_history("submitted placed"), first=4)
    assert [entry.seq for entry in log] == [4, 5]
    assert log[0].time < log[1].time
    assert len({entry.id for entry in log}) == 2
    assert {entry.stream for entry in log} == {"JOBS"}


# -------------------------------------------------------------------------- strategies


@pytest.mark.parametrize("kind", ANY_EVENT, ids=lambda kind: kind.__name__)
def test_every_event_is_drawn_and_survives_the_wire(kind: type[Event]):
    @settings(max_examples=5, deadline=None)
    @given(messages(kind))
    def check(event: Event) -> None:
        assert kind.from_json(event.to_json()) == event

    check()


def test_every_registered_event_is_drawn():
    assert set(ANY_EVENT) == set(REGISTRY.values())


quickly = settings(max_examples=2000, phases=[Phase.generate], database=None)


@pytest.mark.parametrize("state", sorted(set(JobState) - {JobState.NEW}))
def test_a_random_life_can_reach_every_state(state: JobState):
    def arrives(events: list[Transition]) -> bool:
        return told(events).state is state

    # `find` raises NoSuchExample when no life does.
    assert arrives(find(lives(), arrives, settings=quickly))


def test_a_random_life_can_hold_a_second_attempt_beside_an_old_charge():
    def crowded(events: list[Transition]) -> bool:
        return len(told(events).unreclaimed) > 1

    assert crowded(find(lives(), crowded, settings=quickly))


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_lives_without_wildness_have_no_void(data: st.DataObject):
    events = data.draw(lives())
    assert list(void_in(events)) == []


def void_in(events: list[Transition]) -> Iterator[str]:
    return iter(rules.voids(a_log(events)))
