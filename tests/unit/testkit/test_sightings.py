"""Rule 2 broken: by processes that really ran, and by going on without proof."""

from datetime import timedelta
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmaster.core.envelope import Entry
from trainmaster.core.events import (
    Requeued,
)
from trainmaster.core.facts import MemberClosed, MemberStarted
from trainmaster.core.ids import MemberKey
from trainmaster.core.spec import JobSpec
from trainmaster.testkit.builders import (
    KEY,
    START,
    a_history,
    a_log,
    an_entry,
)
from trainmaster.testkit.faults import letting, names
from trainmaster.testkit.rules import check_history
from trainmaster.testkit.sightings import Sighting

pytestmark = pytest.mark.unit

# An event is stored at the second of its position: submitted at 1, ordered at 3.
RUN = "submitted placed ordered started"


def a_told_log(words: str, spec: JobSpec | None = None) -> list[Entry]:
    return a_log(a_history(words, spec=spec))


def sighted(*lines: tuple[int, int, str, str]) -> list[Sighting]:
    """(second, attempt, node, what), of the one job."""
    return [
        Sighting(START + timedelta(seconds=second), KEY.job, attempt, node, what)
        for second, attempt, node, what in lines
    ]


FIRST = f"{RUN} ended reclaimed requeued"
SECOND = f"{RUN} lost fenced placed ordered started"
QUIET = [(3, 1, "n1", "spawn"), (4, 1, "n1", "gone")]


def test_attempts_that_run_one_after_the_other_are_fine():
    seen = sighted(
        *QUIET,
        (3, 1, "n2", "spawn"),
        (5, 1, "n2", "gone"),
        (9, 2, "n1", "spawn"),
        (9, 2, "n2", "spawn"),
    )
    assert check_history(a_told_log(f"{FIRST} placed ordered started"), seen) == []


def test_two_attempts_at_one_instant_are_found():
    log = a_told_log(SECOND)
    seen = sighted((3, 1, "n1", "spawn"), (8, 2, "n3", "spawn"), (9, 1, "n1", "gone"))
    assert names(
        check_history(log, seen),
        "rule 2",
        "attempt 2 of job job-1 on n3 spawned",
        "while attempt 1 of job job-1 on n1 was alive",
    )
    one_after_the_other = sighted(
        (3, 1, "n1", "spawn"), (8, 2, "n3", "spawn"), (8, 1, "n1", "gone")
    )
    assert check_history(log, one_after_the_other) == []


def test_every_process_counts_by_itself():
    log = a_told_log(SECOND)
    two_of_three = [(3, 1, "n1", "spawn")] * 3 + [(5, 1, "n1", "gone")] * 2
    seen = sighted(*two_of_three, (8, 2, "n3", "spawn"))
    assert names(check_history(log, seen), "rule 2", "was alive")


def test_a_process_that_nobody_ordered_is_found():
    seen = sighted(*QUIET)
    assert names(
        check_history(a_told_log("submitted placed"), seen),
        "rule 2",
        "attempt 1 of job job-1 on n1 spawned",
        "without `start_ordered`",
    )
    early = sighted((2, 1, "n1", "spawn"))
    assert names(check_history(a_told_log(RUN), early), "rule 2", "`start_ordered`")


def test_a_process_on_a_node_that_is_not_the_attempts_is_found():
    seen = sighted((3, 1, "n9", "spawn"))
    assert names(check_history(a_told_log(RUN), seen), "rule 2", "not the attempt's")


def test_a_proof_while_something_lives_is_found():
    log = a_told_log(f"{RUN} ended reclaimed")
    alive = sighted((3, 1, "n1", "spawn"), (7, 1, "n1", "gone"))
    assert names(check_history(log, alive), "rule 2", "n1: given back", "1 alive")
    later = sighted(*QUIET, (9, 1, "n1", "spawn"))
    assert names(check_history(log, later), "rule 2", "n1: given back", "spawned at")
    assert check_history(log, sighted(*QUIET)) == []


def test_a_spawn_after_the_node_closed_the_attempt_is_found():
    closed = an_entry(MemberClosed(), key=MemberKey("local", "n1", KEY.job, 1), seq=5)
    log = [*a_told_log(RUN), closed]
    assert check_history(log, sighted(*QUIET)) == []
    seen = sighted(*QUIET, (6, 1, "n1", "spawn"))
    assert names(check_history(log, seen), "rule 2", "n1: closed", "spawned at")


def test_more_gone_than_spawned_is_found():
    seen = sighted(*QUIET, (5, 1, "n1", "gone"))
    assert names(check_history(a_told_log(RUN), seen), "rule 2", "more processes gone")


processes = st.tuples(
    st.integers(1, 2),
    st.sampled_from(["n1", "n2"]),
    st.integers(10, 20),
    st.integers(1, 4),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(processes, max_size=6))
def test_overlaps_are_found_exactly_when_there_are_some(
    drawn: list[tuple[int, str, int, int]],
):
    seen = sighted(
        *((start, attempt, node, "spawn") for attempt, node, start, _ in drawn),
        *((start + n, attempt, node, "gone") for attempt, node, start, n in drawn),
    )
    overlap = any(
        one[0] != other[0]
        and one[2] < other[2] + other[3]
        and other[2] < one[2] + one[3]
        for one, other in combinations(drawn, 2)
    )
    assert names(check_history(a_told_log(SECOND), seen), "rule 2", "alive") is overlap


def test_rule_2_going_on_without_proof_or_fence_is_found():
    log = a_told_log(f"{RUN} ended requeued")
    assert check_history(log) == []
    found = check_history(log, evolve=letting(Requeued))
    assert names(found, "rule 2", "no proof and no fence of n1")
    assert names(found, "rule 2", "no proof and no fence of n2")


def test_rule_2_a_restore_point_chosen_beside_living_ranks_is_found():
    found = check_history(a_told_log(f"{RUN} ended chosen reclaimed requeued"))
    assert names(found, "rule 2", "restore point chosen before n1")
    for fine in (
        f"{RUN} ended chosen fenced",
        f"{RUN} ended reclaimed chosen requeued",
        f"{RUN} ended chosen reclaimed chosen requeued",
        "submitted placed ended chosen reclaimed requeued",
        f"{RUN} ended chosen reclaimed failed",
    ):
        assert check_history(a_told_log(fine)) == [], fine


def test_rule_2_an_agent_that_started_without_an_order_is_found():
    fact = an_entry(MemberStarted(pids=(7,)), key=MemberKey("local", "n1", KEY.job, 1))
    assert names(
        check_history([*a_told_log("submitted placed"), fact]),
        "rule 2",
        "attempt 1 started, no `start_ordered`",
    )
    assert check_history([*a_told_log(RUN), fact]) == []
