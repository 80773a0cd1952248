"""Whose turn it is between teams, and what a team may hold: quota, caps, budgets."""

from datetime import timedelta

import pytest
from tests.unit.scheduler.world import World, codes, job_key, nodes_of

from trainmaster.core.facts import (
    BudgetSet,
    PoolTuned,
    QuotaSet,
    TeamCreated,
    TeamPaused,
)
from trainmaster.core.ids import PoolKey, TeamKey
from trainmaster.core.record import JobState

pytestmark = pytest.mark.unit


@pytest.fixture
def world() -> World:
    return World()


def quota(world: World, team: str, accelerators: int, **more: int | str) -> None:
    event = QuotaSet(pool="local", accelerators=accelerators)
    world.say(TeamKey(team), event.model_copy(update=more))


def running(world: World, team: str) -> int:
    jobs = world.state.jobs.in_state(JobState.PLACED)
    return sum(job.spec.accelerators_per_node for job in jobs if job.key.team == team)


def why_team(world: World, name: str, team: str) -> list[str]:
    return codes(world.plan().waiting()[job_key(name, team)])


def test_teams_take_turns_whoever_came_first(world: World):
    world.node("n1", accelerators=4)
    for number in range(8):
        world.submit(f"a-{number}", team="a")
    for number in range(2):
        world.submit(f"b-{number}", team="b")
    world.settle()
    assert (running(world, "a"), running(world, "b")) == (2, 2)


def test_a_team_with_twice_the_weight_gets_twice_as_much(world: World):
    world.node("n1", accelerators=6)
    world.say(TeamKey("a"), QuotaSet(pool="local", weight=2.0))
    for number in range(8):
        world.submit(f"a-{number}", team="a")
        world.submit(f"b-{number}", team="b")
    world.settle()
    assert (running(world, "a"), running(world, "b")) == (4, 2)


def test_who_has_used_much_waits_although_it_holds_nothing(world: World):
    world.node("n1", accelerators=1)
    world.submit("old", team="a")
    world.settle()
    world.at(world.now + timedelta(hours=5))
    world.tell("old", "ended reclaimed failed", team="a")
    world.submit("a-1", team="a")
    world.submit("b-1", team="b")
    assert set(world.cycle()) == {"b-1"}


def test_among_equals_of_one_team_it_is_first_come_first_served(world: World):
    world.node("n1", accelerators=4)
    order: list[str] = []
    for number in range(10):
        world.submit(f"job-{number}", accelerators_per_node=4)
    for _ in range(10):
        placed = list(world.cycle())
        order += placed
        world.tell(placed[0], "ended reclaimed failed")
    assert order == [f"job-{number}" for number in range(10)]


def test_who_waited_beyond_the_bound_goes_first(world: World):
    world.node("n1", accelerators=1)
    world.submit("old", priority=-100)
    world.at(world.now + timedelta(hours=25))
    world.submit("new", priority=100)
    assert set(world.cycle()) == {"old"}


def test_a_team_holds_no_more_than_its_quota(world: World):
    world.node("n1", accelerators=8)
    quota(world, "a", 2)
    for number in range(4):
        world.submit(f"a-{number}", team="a")
    world.settle()
    assert running(world, "a") == 2
    waiting = world.plan().waiting()[job_key("a-2", "a")].reasons[0]
    assert (waiting.code, waiting.message) == (
        "QUOTA_TEAM",
        "needs 1 accelerators; team a holds 2 of 2",
    )
    assert waiting.numbers == {"needed": 1, "held": 2, "limit": 2}


def test_a_team_borrows_what_its_siblings_leave(world: World):
    world.node("n1", accelerators=8)
    for team in ("a", "b"):
        world.say(TeamKey(team), TeamCreated(parent="both"))
        quota(world, team, 2, borrowing=4)
    for number in range(6):
        world.submit(f"a-{number}", team="a")
    world.settle()
    assert running(world, "a") == 4
    world.submit("b-0", team="b")
    assert why_team(world, "b-0", "b") == ["QUOTA_TEAM"]


def test_a_quota_changed_live_lets_the_next_start(world: World):
    world.node("n1", accelerators=8)
    quota(world, "a", 0)
    world.submit("a-0", team="a")
    assert not world.decide().groups
    quota(world, "a", 1)
    assert set(world.cycle()) == {"a-0"}


def test_a_blocked_job_keeps_its_teams_quota_and_no_other_teams(world: World):
    world.node("n1", accelerators=8)
    quota(world, "a", 4)
    world.submit("a-0", team="a", accelerators_per_node=2)
    world.settle()
    world.submit("a-wide", team="a", accelerators_per_node=4)
    world.submit("a-small", team="a")
    world.submit("b-0", team="b")
    assert set(world.cycle()) == {"b-0"}
    assert "PRIORITY" in why_team(world, "a-small", "a")


def test_a_job_beyond_every_limit_holds_nobody_up(world: World):
    world.node("n1", accelerators=8)
    quota(world, "a", 4, accelerators_per_job_max=2)
    world.submit("wide", team="a", accelerators_per_node=4)
    world.submit("small", team="a")
    assert set(world.cycle()) == {"small"}
    told = world.plan().waiting()[job_key("wide", "a")].reasons[0].message
    assert told == "needs 4 accelerators; a job of team a may have 2"


def test_a_users_cap_holds_only_that_user_up(world: World):
    world.node("n1", accelerators=8)
    quota(world, "a", -1, accelerators_per_user_max=1)
    for number in range(2):
        world.submit(f"eve-{number}", team="a", by="eve")
    world.submit("ada-0", team="a", by="ada")
    assert set(world.settle()) == {"eve-0", "ada-0"}


def test_a_paused_parent_pauses_its_children(world: World):
    world.node("n1")
    world.say(TeamKey("child"), TeamCreated(parent="top"))
    world.say(TeamKey("top"), TeamPaused(paused=True))
    world.submit("job", team="child")
    assert not world.decide().groups
    world.say(TeamKey("top"), TeamPaused(paused=False))
    assert world.decide().groups


def test_a_circle_of_teams_does_no_harm(world: World):
    world.node("n1")
    world.say(TeamKey("a"), TeamCreated(parent="b"))
    world.say(TeamKey("b"), TeamCreated(parent="a"))
    quota(world, "a", 1)
    world.submit("job", team="b")
    assert set(world.cycle()) == {"job"}


def test_a_spent_budget_holds_when_its_policy_says_so(world: World):
    world.node("n1", accelerators=4)
    world.say(PoolKey("local"), PoolTuned(accelerator_hour_price=2.0))
    world.say(TeamKey("a"), BudgetSet(amount=10.0, currency="EUR", policy="hold"))
    world.submit("a-0", team="a", accelerators_per_node=3)
    world.settle()
    world.at(world.now + timedelta(hours=2))
    world.submit("a-1", team="a")
    assert not world.decide().groups
    told = world.plan().waiting()[job_key("a-1", "a")].reasons[0]
    sentence = "team a spent its budget of 10.00 EUR"
    assert (told.code, told.message) == ("BUDGET", sentence)
    world.say(TeamKey("a"), BudgetSet(amount=10.0, policy="warn"))
    assert nodes_of(world.cycle()) == {"a-1": ("n1",)}
