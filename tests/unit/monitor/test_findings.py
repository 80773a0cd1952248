"""Findings: raised once with evidence, cleared once, and never lost."""

from datetime import timedelta
from math import inf, nan

import pytest
from tests.unit.monitor.world import KEY, World, an_exit

from trainmaster.core.events import AttemptLost, Event
from trainmaster.core.ids import Key
from trainmaster.core.notes import FindingCleared, FindingRaised
from trainmaster.core.values import Cause
from trainmaster.monitor.observed import NotFinite
from trainmaster.monitor.settings import FINDING_SECONDS
from trainmaster.monitor.store import tables
from trainmaster.runtime.tables import write_key

pytestmark = pytest.mark.unit

RUNNING = "submitted placed ordered started"
AGAIN = "reclaimed requeued placed ordered started"


@pytest.fixture
def world() -> World:
    world = World()
    world.tell(RUNNING)
    return world


def raised(said: list[tuple[Key, Event]]) -> list[FindingRaised]:
    return [event for _, event in said if isinstance(event, FindingRaised)]


def not_finite(world: World, attempt: int, step: int = 30) -> None:
    seen = NotFinite(key=KEY, attempt=attempt, rank=0, step=step, text="nan")
    world.facts[seen.fact] = seen


# --------------------------------------------------------------------------- ends


def test_a_failed_rank_is_named_with_node_exit_step_and_loss(world: World):
    world.progress(1, 120, 2.34567)
    world.end(Cause.RANK_FAILED, first=an_exit())
    world.seconds += FINDING_SECONDS
    assert raised(world.turn()) == [
        FindingRaised(
            attempt=1,
            finding="rank_exit-1",
            rule="rank_exit",
            summary="rank 1 on n2 exited with code 1 after step 120, loss 2.346",
            evidence=("because", "Traceback", "Boom"),
            step=120,
        )
    ]


@pytest.mark.parametrize(
    ("exit_", "words"),
    [
        (an_exit(code=0, signal=9), "rank 1 on n2 was killed by signal 9 (SIGKILL)"),
        (an_exit(code=0, signal=200), "rank 1 on n2 was killed by signal 200"),
        (an_exit(signal=9, out_of_memory=True), "rank 1 on n2 ran out of memory"),
        (an_exit(code=0, unknown=True), "rank 1 on n2 is gone, and nobody saw how"),
        (an_exit(node="", code=3), "rank 1 exited with code 3"),
    ],
    ids=["signal", "odd-signal", "memory", "unknown", "no-node"],
)
def test_how_a_rank_ended_is_said_in_words(world: World, exit_: object, words: str):
    world.end(Cause.INFRASTRUCTURE, first=exit_)
    world.seconds += FINDING_SECONDS
    (finding,) = raised(world.turn())
    assert finding.summary == words


def test_an_attempt_that_failed_without_a_rank_names_cause_and_node(world: World):
    world.end(Cause.START_FAILED, node="n1")
    world.seconds += FINDING_SECONDS
    (finding,) = raised(world.turn())
    assert finding.rule == "attempt_failed"
    assert finding.summary == "attempt 1 ended on n1: start_failed"


def test_a_lost_node_is_remarked(world: World):
    lost = AttemptLost(
        attempt=1, cause=Cause.NODE_LOST, reason="node n1 is silent", nodes=("n1",)
    )
    world.say(KEY, lost)
    world.seconds += FINDING_SECONDS
    (finding,) = raised(world.turn())
    assert finding.evidence == ("node n1 is silent",)


@pytest.mark.parametrize(
    "cause",
    [Cause.COMPLETED, Cause.CANCELLED, Cause.PREEMPTED, Cause.TIME_LIMIT],
)
def test_an_ordered_end_is_no_finding(world: World, cause: Cause):
    world.end(cause)
    world.seconds += 10
    assert world.turn() == []


def test_the_last_lines_are_waited_for_a_moment(world: World):
    ended_at = world.now
    world.end(Cause.RANK_FAILED, first=an_exit())
    decision = world.decide()
    assert decision.groups == ()
    assert decision.wake_at == ended_at + timedelta(seconds=FINDING_SECONDS)


def test_a_finding_is_raised_once(world: World):
    world.end(Cause.RANK_FAILED, first=an_exit())
    world.seconds += 10
    world.look()
    assert world.decide() == world.decide()
    assert len(world.turn()) == 1
    assert world.turn() == []


def test_a_finding_is_raised_although_the_job_went_on_meanwhile(world: World):
    world.end(Cause.RANK_FAILED, first=an_exit())
    world.tell(AGAIN)
    world.end(Cause.OUT_OF_MEMORY, first=an_exit(out_of_memory=True))
    world.seconds += 10
    findings = raised(world.turn())
    assert [f.finding for f in findings] == ["rank_exit-1", "rank_exit-2"]
    assert world.turn() == []


def test_a_finding_that_is_on_the_log_already_is_not_raised_again(world: World):
    world.end(Cause.RANK_FAILED, first=an_exit())
    world.say(KEY, FindingRaised(attempt=1, finding="rank_exit-1", rule="rank_exit"))
    world.seconds += 10
    assert world.turn() == []


def test_evidence_is_bounded(world: World):
    lines = tuple(f"{n} " + "x" * 10_000 for n in range(1000))
    world.end(Cause.RANK_FAILED, first=an_exit(last_lines=lines))
    world.seconds += 10
    (finding,) = raised(world.turn())
    assert len(finding.to_json()) < 20_000
    assert finding.evidence[-1].startswith("999 ")


def test_the_progress_of_another_attempt_is_no_evidence(world: World):
    world.progress(7, 500, 1.0)
    world.end(Cause.RANK_FAILED, first=an_exit())
    world.seconds += 10
    (finding,) = raised(world.turn())
    assert (finding.step, "step" in finding.summary) == (0, False)


# -------------------------------------------------------------------------- losses


def test_a_loss_that_is_no_number_is_remarked_once_per_attempt(world: World):
    not_finite(world, 1)
    assert raised(world.turn()) == [
        FindingRaised(
            attempt=1,
            finding="nan-1",
            rule="nan",
            summary="loss is nan at step 30",
            evidence=("rank 0 reported loss nan at step 30",),
            step=30,
        )
    ]
    not_finite(world, 1, step=31)
    assert world.turn() == []
    assert world.facts == {}


def test_the_next_attempt_may_be_remarked_again(world: World):
    not_finite(world, 1)
    world.turn()
    world.tell("ended " + AGAIN)
    not_finite(world, 2, step=40)
    assert [f.finding for f in raised(world.turn()) if f.rule == "nan"] == ["nan-2"]


def test_a_loss_of_an_attempt_that_is_over_is_forgotten(world: World):
    world.tell("ended " + AGAIN)
    world.seconds += 10
    world.turn()
    not_finite(world, 1)
    assert world.turn() == []
    assert world.facts == {}


def test_a_loss_of_an_attempt_the_log_has_not_told_of_waits(world: World):
    not_finite(world, 2)
    assert world.turn() == []
    world.tell("ended " + AGAIN)
    assert [f.finding for f in raised(world.turn()) if f.rule == "nan"] == ["nan-2"]


def test_a_loss_of_an_unknown_job_is_forgotten():
    world = World()
    not_finite(world, 1)
    assert world.turn() == []
    assert world.facts == {}


def cleared_after(world: World, attempt: int, step: int, loss: float | None) -> bool:
    not_finite(world, 1, step=30)
    world.turn()
    world.tell("ended " + AGAIN)
    world.seconds += 10
    world.turn()
    world.progress(attempt, step, loss)
    said = world.turn()
    assert world.turn() == []
    return any(isinstance(event, FindingCleared) for _, event in said)


@pytest.mark.parametrize(
    ("attempt", "step", "loss", "cleared"),
    [
        (2, 31, 2.5, True),
        (2, 30, 2.5, False),
        (1, 99, 2.5, False),
        (2, 31, nan, False),
        (2, 31, inf, False),
        (2, 31, None, False),
    ],
)
def test_a_loss_is_right_again_once_a_later_attempt_has_passed_it(
    world: World, attempt: int, step: int, loss: float | None, *, cleared: bool
):
    assert cleared_after(world, attempt, step, loss) is cleared


def test_a_cleared_finding_names_what_it_clears(world: World):
    assert cleared_after(world, 2, 31, 2.5)
    (note,) = [e.event for e in world.log if isinstance(e.event, FindingCleared)]
    assert (note.finding, note.rule, note.attempt) == ("nan-1", "nan", 2)


# --------------------------------------------------------------------------- memory


def test_what_is_pending_survives_a_restart(world: World):
    not_finite(world, 1)
    world.turn()
    world.end(Cause.RANK_FAILED, first=an_exit())
    kept = tables()
    names = [("job", KEY), ("ends", KEY), ("nan", KEY)]
    documents: dict[str, dict[str, str]] = {}
    for (name, key), body in kept.dump(world.state, names).items():
        assert body is not None
        documents.setdefault(name, {})[key] = body
    again = World(state=kept.load(documents), seconds=world.seconds + 10)
    assert [f.finding for f in raised(again.turn())] == ["rank_exit-1"]
    assert again.state.nans == world.state.nans
    assert write_key(KEY) in documents["job"]


def test_an_archived_job_leaves_nothing_behind(world: World):
    not_finite(world, 1)
    world.turn()
    world.end(Cause.RANK_FAILED, first=an_exit())
    world.tell("reclaimed failed archived")
    world.turn()
    assert (world.state.jobs, world.state.ends, world.state.nans) == ({}, {}, {})
    world.say(KEY, FindingRaised(attempt=1, rule="nan", finding="nan-1"))
    assert world.state.nans == {}


def test_folding_the_log_twice_gives_the_same_state(world: World):
    not_finite(world, 1)
    world.turn()
    world.end(Cause.RANK_FAILED, first=an_exit())
    world.seconds += 10
    world.turn()
    again = World()
    for entry in world.log:
        again.say(entry.key, entry.event)
    assert again.state.ends == world.state.ends
    assert again.state.nans == world.state.nans
