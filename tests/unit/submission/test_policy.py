"""What becomes of a request."""

from collections.abc import Callable

import pytest
from tests.unit.submission.world import NOW, World

from trainmaster.core.events import (
    Archived,
    CancelRequested,
    Event,
    Held,
    Released,
    Reprioritized,
    Submitted,
)
from trainmaster.core.facts import PoolCreated, TeamCreated
from trainmaster.core.ids import JobId, JobKey, PoolKey, TeamKey
from trainmaster.core.record import FINAL, LIVE, JobState
from trainmaster.core.spec import spec_digest
from trainmaster.submission.policy import judge
from trainmaster.submission.requests import (
    Already,
    Cancel,
    Hold,
    Impossible,
    Missing,
    Release,
    Reprioritize,
    Request,
    Stored,
    Submit,
    Unfit,
)
from trainmaster.testkit.builders import KEY, LIVES, a_history, a_spec

pytestmark = pytest.mark.unit

CHANGES: dict[type[Event], Request] = {
    CancelRequested: Cancel(key=KEY, by="ada", reason="no longer needed"),
    Held: Hold(key=KEY, by="ada"),
    Released: Release(key=KEY, by="ada"),
    Reprioritized: Reprioritize(key=KEY, by="ada", priority=7),
}


def founded() -> World:
    world = World()
    world.turn()
    return world


def with_job(state: JobState) -> World:
    world = founded()
    for event in a_history(LIVES[state]):
        world.store(KEY, event)
    return world


def a_submit(number: int = 1, *, team: str = "default", pool: str = "local") -> Submit:
    key = JobKey(team, JobId(f"job-{number}"))
    return Submit(key=key, by="ada", spec=a_spec(pool=pool))


def test_the_first_team_and_pool_are_founded_once():
    world = founded()
    world.turn()
    assert [(e.key, type(e.event)) for e in world.entries] == [
        (TeamKey("default"), TeamCreated),
        (PoolKey("local"), PoolCreated),
    ]
    pool = world.state.pools[PoolKey("local")]
    assert (pool.port_first, pool.port_last) == (20000, 29999)


def test_a_request_is_the_event_it_asks_for():
    world, submit = founded(), a_submit()
    event = judge(world.state, submit)
    assert event == Submitted(
        spec=submit.spec, spec_digest=spec_digest(submit.spec), by="ada"
    )


def test_what_was_submitted_is_so_already():
    world = founded()
    world.store(a_submit().key, Submitted(spec=a_spec()))
    assert isinstance(judge(world.state, a_submit()), Already)


def test_a_dry_submission_stores_nothing():
    submit = Submit(key=a_submit().key, spec=a_spec(), dry=True)
    assert isinstance(judge(founded().state, submit), Already)


def test_an_unknown_team_and_pool_are_both_named():
    reply = judge(founded().state, a_submit(team="defalt", pool="gpu"))
    assert isinstance(reply, Unfit)
    assert [f"{f.field}: {f.message}" for f in reply.faults] == [
        "team: no team is called `defalt` (known: `default`). Did you mean `default`?",
        "pool: no pool is called `gpu` (known: `local`)",
    ]


@pytest.mark.parametrize("request_", CHANGES.values(), ids=lambda r: type(r).__name__)
def test_a_job_nobody_knows_cannot_be_changed(request_: Request):
    assert judge(founded().state, request_) == Missing()


def test_an_archived_job_is_known_no_more():
    world = with_job(JobState.CANCELLED)
    world.store(KEY, Archived())
    assert judge(world.state, CHANGES[CancelRequested]) == Missing()


STATES = [state for state in JobState if state is not JobState.NEW]
POSSIBLE: dict[type[Event], Callable[[JobState], bool]] = {
    CancelRequested: lambda s: s not in FINAL,
    Held: lambda s: s in {JobState.QUEUED, JobState.SETTLING},
    Released: lambda s: s is JobState.HELD,
    Reprioritized: lambda s: s not in FINAL,
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("kind", CHANGES, ids=lambda kind: kind.__name__)
def test_a_request_is_said_exactly_where_it_moves_something(
    kind: type[Event], state: JobState
):
    world = with_job(state)
    outcome = judge(world.state, CHANGES[kind])
    assert isinstance(outcome, kind) == POSSIBLE[kind](state)
    if isinstance(outcome, Event):
        before = world.state.jobs[KEY]
        world.store(KEY, outcome)
        assert world.state.jobs[KEY] != before, "the event was void"


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("kind", CHANGES, ids=lambda kind: kind.__name__)
def test_asking_again_changes_nothing(kind: type[Event], state: JobState):
    world = with_job(state)
    outcome = judge(world.state, CHANGES[kind])
    if isinstance(outcome, Event):
        world.store(KEY, outcome)
        outcome = judge(world.state, CHANGES[kind])
    assert isinstance(outcome, Already | Impossible)


@pytest.mark.parametrize("state", sorted(LIVE))
def test_a_live_job_cannot_be_held_and_the_answer_says_what_can_be_done(
    state: JobState,
):
    reply = judge(with_job(state).state, CHANGES[Held])
    assert isinstance(reply, Impossible)
    assert "a live one can be cancelled" in reply.message


def test_a_cancelled_job_is_cancelled_already():
    state = with_job(JobState.CANCELLED).state
    assert judge(state, CHANGES[CancelRequested]) == Already(message="it is cancelled")


async def test_many_requests_become_one_decision():
    world = founded()
    for number in range(1, 4):
        world.facts.put(f"submit:{number}", a_submit(number))
    world.facts.put("scan:other", object())
    decision = world.policy.decide(world.state, world.facts.current(), NOW)
    assert [group[0].key for group in decision.groups] == [
        a_submit(number).key for number in (1, 2, 3)
    ]
    assert [answer.fact for answer in decision.answers] == [
        "submit:1",
        "submit:2",
        "submit:3",
    ]


async def test_a_job_moves_once_in_a_decision():
    world = with_job(JobState.QUEUED)
    world.facts.put("hold", CHANGES[Held])
    world.facts.put("cancel", CHANGES[CancelRequested])
    first = world.policy.decide(world.state, world.facts.current(), NOW)
    assert [type(group[0].event) for group in first.groups] == [Held]
    world.turn()
    world.facts.drop("hold")
    second = world.policy.decide(world.state, world.facts.current(), NOW)
    assert [type(group[0].event) for group in second.groups] == [CancelRequested]


async def test_the_same_decision_names_the_same_events():
    world = founded()
    world.facts.put("submit", a_submit())
    first = world.policy.decide(world.state, world.facts.current(), NOW)
    assert world.policy.decide(world.state, world.facts.current(), NOW).groups == (
        first.groups
    )


async def test_a_request_is_answered_with_where_it_was_stored():
    world = founded()
    async with world.running():
        reply = await world.facts.ask("submit", a_submit())
    assert reply == Stored(seq=len(world.entries))
