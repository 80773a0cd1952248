"""Who is stopped for whom: only if it helps, as little as can be, and not for ever."""

from datetime import timedelta

import pytest
from tests.unit.scheduler.world import POOL, World, job_key, nodes_of

from trainmaster.core.events import PreemptRequested
from trainmaster.core.facts import PriorityClassSet, QuotaSet, TeamCreated
from trainmaster.core.ids import PoolKey, TeamKey
from trainmaster.core.notes import CheckpointVerified
from trainmaster.core.record import JobState
from trainmaster.scheduler.settings import PREEMPT_AGAIN_SECONDS

pytestmark = pytest.mark.unit


@pytest.fixture
def world() -> World:
    return World()


def filled(world: World, *nodes: str, each: int = 8) -> None:
    """Every node is full of one running job of low priority, `low-<node>`."""
    for node in nodes:
        world.node(node, accelerators=each)
        world.submit(f"low-{node}", accelerators_per_node=each, priority=-100)
    world.settle()
    for node in nodes:
        world.tell(f"low-{node}", "ordered started")


def stopped(world: World) -> list[str]:
    """Decide once, store it, and name who is stopped."""
    names: list[str] = []
    for group in world.decide().groups:
        for write in group:
            world.say(write.key, write.event)
            if isinstance(write.event, PreemptRequested):
                names.append(str(write.key[-1]))
    return names


def gone(world: World, *names: str) -> None:
    """Let stopped jobs end, give everything back and queue again."""
    for name in names:
        world.say_ended_by_stop(job_key(name))
        world.tell(name, "reclaimed requeued")


def test_an_urgent_job_stops_one_of_less_priority_and_then_starts(world: World):
    filled(world, "n1", "n2")
    world.submit("urgent", accelerators_per_node=8, priority=100)
    (victim,) = stopped(world)
    assert stopped(world) == []
    gone(world, victim)
    assert nodes_of(world.cycle()) == {"urgent": (victim.removeprefix("low-"),)}


def test_a_normal_job_stops_nobody(world: World):
    filled(world, "n1")
    world.submit("plain", accelerators_per_node=8)
    assert stopped(world) == []


def test_nobody_is_stopped_when_the_urgent_job_could_not_start_anyway(world: World):
    filled(world, "n1", "n2", "n3")
    world.node("n4", accelerators=8)
    world.submit("equal", accelerators_per_node=8, priority=100)
    world.settle()
    world.submit("urgent", nodes=4, accelerators_per_node=8, priority=100)
    assert stopped(world) == []


def test_what_is_free_counts_and_only_the_rest_is_taken(world: World):
    filled(world, "n1", "n2", "n3")
    world.node("n4", accelerators=8)
    world.submit("urgent", nodes=4, accelerators_per_node=8, priority=100)
    victims = stopped(world)
    assert sorted(victims) == ["low-n1", "low-n2", "low-n3"]
    gone(world, *victims)
    assert set(world.cycle()) == {"urgent"}


def test_only_one_of_many_goes_when_one_will_do(world: World):
    world.node("n1", accelerators=8)
    for number in range(8):
        world.submit(f"low-{number}", priority=-100)
    world.settle()
    world.submit("urgent", priority=100)
    assert len(stopped(world)) == 1


def test_who_has_saved_lately_goes_first(world: World):
    filled(world, "n1", "n2", "n3")
    world.at(world.now + timedelta(hours=1))
    world.say(job_key("low-n2"), CheckpointVerified(attempt=1, step=5))
    world.submit("urgent", accelerators_per_node=8, priority=100)
    assert stopped(world) == ["low-n2"]


def test_a_gang_goes_whole_and_is_paid_once(world: World):
    for name in ("n1", "n2", "n3"):
        world.node(name, accelerators=8)
    world.submit("gang", nodes=2, accelerators_per_node=8, priority=-100)
    world.submit("alone", accelerators_per_node=8, priority=-100)
    world.settle()
    world.submit("urgent", nodes=2, accelerators_per_node=8, priority=100)
    assert stopped(world) == ["gang"]


def test_nobody_else_is_stopped_while_somebody_is_on_its_way_out(world: World):
    filled(world, "n1", "n2")
    world.tell("low-n2", "stop")
    world.submit("urgent", accelerators_per_node=8, priority=100)
    assert stopped(world) == []


def test_one_that_will_not_die_is_no_longer_waited_for(world: World):
    filled(world, "n1", "n2")
    world.submit("urgent", accelerators_per_node=8, priority=100)
    (first,) = stopped(world)
    assert stopped(world) == []
    world.at(world.now + timedelta(minutes=10))
    (second,) = stopped(world)
    assert {first, second} == {"low-n1", "low-n2"}


def test_freed_room_is_kept_for_whom_it_was_freed(world: World):
    filled(world, "n1", "n2")
    world.submit("urgent", nodes=2, accelerators_per_node=8, priority=100)
    assert len(stopped(world)) == 2
    world.submit("late", accelerators_per_node=8)
    gone(world, "low-n1")
    assert world.cycle() == {}
    gone(world, "low-n2")
    assert set(world.cycle()) == {"urgent"}


def test_a_victim_is_back_at_its_old_place(world: World):
    filled(world, "n1")
    world.submit("urgent", accelerators_per_node=8, priority=100)
    world.submit("later", accelerators_per_node=8, priority=-100)
    gone(world, *stopped(world))
    world.settle()
    world.tell("urgent", "ended reclaimed failed")
    assert set(world.cycle()) == {"low-n1"}


def test_nobody_is_stopped_again_and_again(world: World):
    filled(world, "n1")
    world.submit("urgent-0", accelerators_per_node=8, priority=100)
    gone(world, *stopped(world))
    world.settle()
    world.tell("urgent-0", "ended reclaimed failed")
    world.settle()
    world.submit("urgent-1", accelerators_per_node=8, priority=100)
    assert stopped(world) == []
    world.at(world.now + timedelta(seconds=PREEMPT_AGAIN_SECONDS))
    assert stopped(world) == ["low-n1"]


def test_a_protected_class_is_never_stopped(world: World):
    world.say(PoolKey(POOL), PriorityClassSet(name="low", priority=-9, protected=True))
    world.say(PoolKey(POOL), PriorityClassSet(name="top", priority=50, preempts=True))
    world.node("n1")
    world.submit("low", accelerators_per_node=8)
    world.settle()
    world.submit("urgent", accelerators_per_node=8, priority=50)
    assert stopped(world) == []
    world.say(PoolKey(POOL), PriorityClassSet(name="low", withdrawn=True))
    assert stopped(world) == ["low"]


def test_a_high_job_behind_a_long_queue_stops_the_fewest_in_one_cycle(world: World):
    filled(world, *(f"n{number}" for number in range(8)))
    for number in range(500):
        world.submit(f"wait-{number:03}", accelerators_per_node=8, priority=-100)
    world.decide()
    world.submit("urgent", accelerators_per_node=8, priority=100)
    assert len(stopped(world)) == 1


# ------------------------------------------------------------------------ reclaiming


def lent(world: World, reclaim: str = "") -> None:
    """Team a runs on all eight, four of them borrowed from team b."""
    world.node("n1", accelerators=8)
    for team in ("a", "b"):
        world.say(TeamKey(team), TeamCreated(parent="both"))
        quota = QuotaSet(pool=POOL, accelerators=4, borrowing=4, reclaim=reclaim)
        world.say(TeamKey(team), quota)
    for number in range(4):
        world.submit(f"a-{number}", team="a", accelerators_per_node=2)
    world.settle()


def test_a_team_takes_back_what_is_its_own(world: World):
    lent(world)
    world.submit("b-0", team="b", accelerators_per_node=4)
    victims = stopped(world)
    assert len(victims) == 2
    world.at(world.now + timedelta(seconds=1))
    for victim in victims:
        world.say_ended_by_stop(job_key(victim, "a"))
        world.tell(victim, "reclaimed requeued", team="a")
    assert set(world.cycle()) == {"b-0"}


def test_a_team_takes_back_no_more_than_is_its_own(world: World):
    lent(world)
    world.submit("b-0", team="b", accelerators_per_node=6)
    assert stopped(world) == []


def test_a_team_that_does_not_reclaim_waits(world: World):
    lent(world, reclaim="never")
    world.submit("b-0", team="b", accelerators_per_node=4)
    assert stopped(world) == []


def test_a_team_may_reclaim_only_from_lower_priority(world: World):
    lent(world, reclaim="lower_priority")
    world.submit("b-0", team="b", accelerators_per_node=2)
    assert stopped(world) == []
    world.submit("b-1", team="b", accelerators_per_node=2, priority=1)
    assert len(stopped(world)) == 1


def test_quota_freed_by_the_first_victim_waits_for_the_second(world: World):
    lent(world)
    world.submit("b-0", team="b", accelerators_per_node=4)
    first, second = stopped(world)
    world.say_ended_by_stop(job_key(first, "a"))
    world.tell(first, "reclaimed requeued", team="a")
    assert world.cycle() == {}
    world.say_ended_by_stop(job_key(second, "a"))
    world.tell(second, "reclaimed requeued", team="a")
    assert set(world.cycle()) == {"b-0"}
    assert world.state.stopped[job_key(first, "a")].times == 1
    assert world.state.jobs.count(JobState.QUEUED) == 2
