"""Rules 1, 3 and 6, each broken in every way: a checker that cannot fail is no help."""

from dataclasses import replace

import pytest

from trainmaster.core.envelope import Entry
from trainmaster.core.events import (
    Archived,
    AttemptEnded,
    AttemptPlaced,
    CancelRequested,
    Event,
    Failed,
    Requeued,
    StartOrdered,
    Submitted,
    Succeeded,
    Transition,
)
from trainmaster.core.facts import MemberClosed, RankExited
from trainmaster.core.ids import MemberKey
from trainmaster.core.job import Void
from trainmaster.core.record import Job
from trainmaster.core.spec import JobSpec, SuccessSpec
from trainmaster.core.values import Proof, RankExit
from trainmaster.testkit.builders import (
    KEY,
    a_history,
    a_log,
    a_placed,
    a_spec,
    an_entry,
    some_exits,
)
from trainmaster.testkit.faults import letting, names, twisting
from trainmaster.testkit.rules import check_history

pytestmark = pytest.mark.unit

RUN = "submitted placed ordered started"
DONE = f"{RUN} completed reclaimed succeeded archived"


def a_told_log(words: str, spec: JobSpec | None = None) -> list[Entry]:
    return a_log(a_history(words, spec=spec))


# ------------------------------------------------------------------------------- rule 1


@pytest.mark.parametrize("second", ["ended", "ended@1"])
def test_rule_1_two_endings_that_count_are_found(second: str):
    log = a_told_log(f"{RUN} lost {second}")
    assert check_history(log) == []
    found = check_history(log, evolve=letting(AttemptEnded))
    assert names(found, "rule 1", "JOBS 6 attempt_ended", "JOBS 5 attempt_lost")


def test_rule_1_a_word_on_an_attempt_that_has_not_ended_is_found():
    found = check_history(a_told_log(f"{RUN} failed"), evolve=letting(Failed))
    assert names(found, "rule 1", "attempt 1 has not ended")


def reported(word: str, code: int = 0, *, late: bool = False) -> list[Entry]:
    """A lost attempt whose agents told of the exits and closed; then a last word."""
    events = a_history(f"{RUN} lost reclaimed {word}")
    placed = events[1]
    assert isinstance(placed, AttemptPlaced)
    facts: list[tuple[str, Event]] = []
    for exit_ in some_exits(placed.members, code=code):
        said: list[Event] = [
            RankExited(exit=exit_),
            MemberClosed(proof=Proof(node=exit_.node, how="closed")),
        ]
        facts += [(exit_.node, fact) for fact in (reversed(said) if late else said)]
    return [
        *a_log(events),
        *(
            an_entry(fact, key=MemberKey("local", node, KEY.job, 1), seq=seq)
            for seq, (node, fact) in enumerate(facts, 1)
        ),
    ]


@pytest.mark.parametrize("word", ["failed", "requeued"])
def test_rule_1_the_exits_decide_and_not_who_came_first(word: str):
    found = check_history(reported(word))
    assert names(found, "rule 1", "all ranks had exited 0 by themselves")
    assert check_history(reported(word, code=1)) == []
    assert check_history(reported(word, late=True)) == [], "nobody could know"


def test_rule_1_a_lost_attempt_succeeds_on_the_exits_its_agents_told():
    assert check_history(reported("succeeded")) == []
    found = check_history(reported("succeeded", code=1))
    assert names(found, "rule 3", "not every rank exited 0 by itself")


# ------------------------------------------------------------------------------- rule 3


def test_rule_3_two_final_words_are_found():
    log = a_told_log(f"{RUN} ended reclaimed failed succeeded")
    found = check_history(log, evolve=letting(Succeeded))
    assert names(found, "rule 3", "JOBS 8 succeeded: counts after", "JOBS 7 failed")


@pytest.mark.parametrize("exits", [{"code": 1}, {"signal": 9}, {"by_us": True}])
def test_rule_3_success_with_a_rank_that_failed_is_found(exits: dict[str, int]):
    placed = a_placed()
    ended = AttemptEnded(attempt=1, exits=some_exits(placed.members, **exits))
    *begin, _, reclaimed, word = a_history(f"{RUN} completed reclaimed succeeded")
    found = check_history(a_log([*begin, ended, reclaimed, word]))
    assert names(found, "rule 3", "not every rank exited 0 by itself")


def test_rule_3_success_of_a_lost_attempt_needs_some_evidence():
    *begin, word = a_history(f"{RUN} lost reclaimed succeeded")
    assert check_history(a_log([*begin, word])) == []
    bare = word.model_copy(update={"evidence": ()})
    found = check_history(a_log([*begin, bare]))
    assert names(found, "rule 3", "no exit record and no other evidence")


@pytest.mark.parametrize(
    ("wanted", "change", "lack"),
    [
        (SuccessSpec(step=10), {"step": 9}, "comes before the declared step 10"),
        (SuccessSpec(step=10), {"evidence": ()}, "names no evidence"),
        (SuccessSpec(checkpoint=True), {"evidence": ()}, "names no evidence"),
    ],
)
def test_rule_3_success_without_what_was_declared_is_found(
    wanted: SuccessSpec, change: dict[str, object], lack: str
):
    # A crash in the teardown after all the evidence is there is still a success.
    spec = a_spec(success=wanted)
    *begin, word = a_history(f"{RUN} ended reclaimed succeeded", spec=spec)
    assert check_history(a_log([*begin, word])) == []
    found = check_history(a_log([*begin, word.model_copy(update=change)]))
    assert names(found, "rule 3", lack)


def test_rule_3_a_job_that_nobody_cancelled_is_not_cancelled():
    found = check_history(a_told_log(f"{RUN} ended reclaimed cancelled"))
    assert names(found, "rule 3", "nobody asked for it")


def test_rule_3_a_final_word_that_ends_nothing_is_found():
    def keep(before: Job, after: Job) -> Job:
        return replace(after, state=before.state)

    log = a_told_log(f"{RUN} ended reclaimed failed")
    found = check_history(log, evolve=twisting(Failed, keep))
    assert names(found, "rule 3", "failed: leads to settling")


def test_rule_3_archiving_before_the_final_word_is_found():
    log = a_told_log(f"{RUN} ended reclaimed archived")
    assert check_history(log) == []
    found = check_history(log, evolve=letting(Archived))
    assert names(found, "rule 3", "archived: comes in settling")


@pytest.mark.parametrize("after", ["submitted", "archived", "held", "cancel"])
def test_rule_3_nothing_comes_after_the_archive(after: str):
    events = [*a_history(DONE), *a_history(f"submitted {after}")[-1:]]
    kind = type(events[-1])
    found = check_history(a_log(events), evolve=letting(kind))
    assert names(found, "rule 3", "comes after", "archived")
    assert names(check_history(a_log([*events, Submitted()])), "rule 3", "submitted")


# ------------------------------------------------------------------------------- rule 6


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("submitted cancel placed", AttemptPlaced),
        ("submitted placed cancel ordered", StartOrdered),
        (f"{RUN} cancel ended reclaimed requeued", Requeued),
    ],
)
def test_rule_6_going_on_after_a_cancel_is_found(words: str, kind: type[Transition]):
    log = a_told_log(words)
    assert check_history(log) == []
    found = check_history(log, evolve=letting(kind))
    assert names(found, "rule 6", "comes after the cancel request")


def test_rule_6_a_cancel_that_leaves_the_job_running_is_found():
    def keep(before: Job, after: Job) -> Job:
        return replace(after, state=before.state)

    log = a_told_log(f"{RUN} cancel")
    found = check_history(log, evolve=twisting(CancelRequested, keep))
    assert names(found, "rule 6", "leads to running after the request")


def test_rule_6_a_cancel_that_is_lost_is_found():
    def lose(_before: Job, _after: Job) -> Void:
        return Void(reason="not now")

    log = a_told_log(f"{RUN} cancel")
    found = check_history(log, evolve=twisting(CancelRequested, lose))
    assert names(found, "rule 6", "the request is not kept")


def test_rule_6_success_after_a_cancel_without_clean_exits_is_found():
    log = a_told_log(f"{RUN} cancel ended reclaimed succeeded")
    assert check_history(log) == []
    found = check_history(log, evolve=letting(Succeeded))
    assert names(found, "rule 6", "not every rank exited 0")


def test_rule_6_what_the_agents_saw_is_stronger_than_the_ending():
    log = a_told_log(f"{RUN} cancel completed reclaimed succeeded")
    told = RankExited(exit=RankExit(rank=1, node="n2", by_us=True))
    fact = an_entry(told, key=MemberKey("local", "n2", KEY.job, 1))
    assert check_history(log) == []
    assert names(check_history([*log, fact]), "rule 6", "not every rank exited 0")
