"""What a blocked job keeps for itself, and what may go on behind it."""

import pytest
from tests.unit.scheduler.world import GIB, World, codes, job_key, nodes_of, why

from trainmaster.core.facts import NodeLost
from trainmaster.core.ids import NodeKey

pytestmark = pytest.mark.unit


@pytest.fixture
def world() -> World:
    return World()


def busy(world: World, node: str, accelerators: int, used: int) -> None:
    """A node where `used` devices are taken."""
    world.node(node, accelerators=accelerators)
    world.submit(f"on-{node}", accelerators_per_node=used)
    world.settle()


def test_nothing_overtakes_a_blocked_job_on_nodes_it_could_use(world: World):
    busy(world, "n1", 8, 1)
    world.submit("wide", accelerators_per_node=8)
    world.submit("narrow", accelerators_per_node=1)
    assert not world.decide().groups
    assert list(why(world, "narrow")) == ["PRIORITY"]
    assert "job wide is ahead" in why(world, "narrow")["PRIORITY"]


def test_what_a_blocked_job_cannot_use_goes_on(world: World):
    busy(world, "big", 8, 1)
    world.node("small", accelerators=2)
    world.submit("wide", accelerators_per_node=8)
    world.submit("narrow", accelerators_per_node=2)
    assert nodes_of(world.cycle()) == {"narrow": ("small",)}


def test_a_more_important_job_passes_a_blocked_one(world: World):
    busy(world, "n1", 8, 1)
    world.submit("wide", accelerators_per_node=8)
    world.submit("urgent", accelerators_per_node=1, priority=100)
    assert nodes_of(world.cycle()) == {"urgent": ("n1",)}


def test_a_job_without_accelerators_passes_one_that_waits_for_them(world: World):
    busy(world, "n1", 8, 1)
    world.submit("wide", accelerators_per_node=8)
    world.submit("plain", accelerators_per_node=0)
    assert nodes_of(world.cycle()) == {"plain": ("n1",)}


def test_a_job_with_accelerators_passes_one_that_waits_for_cores(world: World):
    world.node("n1", accelerators=8, cpus=4)
    world.submit("cores", accelerators_per_node=0, cpus_per_node=4)
    world.settle()
    world.submit("more-cores", accelerators_per_node=0, cpus_per_node=4)
    world.submit("gpu")
    assert nodes_of(world.cycle()) == {"gpu": ("n1",)}


def test_nobody_takes_the_memory_that_a_blocked_job_waits_for(world: World):
    world.node("n1", accelerators=8, memory_bytes=8 * GIB)
    world.submit("first", memory_bytes_per_node=6 * GIB)
    world.settle()
    world.submit("second", memory_bytes_per_node=6 * GIB)
    world.submit("plain", accelerators_per_node=0, memory_bytes_per_node=1 * GIB)
    assert not world.decide().groups


def test_a_job_that_can_never_start_holds_nobody_up(world: World):
    world.node("n1", accelerators=8)
    world.submit("endless", nodes=2, accelerators_per_node=8, priority=9)
    world.submit("plain")
    assert set(world.cycle()) == {"plain"}


def test_a_job_that_waits_for_a_lost_node_holds_nobody_up(world: World):
    world.node("n1", accelerators=8)
    world.node("n2", accelerators=8)
    world.say(NodeKey("local", "n2"), NodeLost())
    world.submit("gang", nodes=2, accelerators_per_node=8, priority=9)
    world.submit("plain")
    assert set(world.cycle()) == {"plain"}


def test_the_blocked_job_starts_once_the_node_is_empty(world: World):
    busy(world, "n1", 8, 1)
    world.submit("wide", accelerators_per_node=8)
    world.submit("narrow")
    world.tell("on-n1", "ended reclaimed failed")
    assert set(world.settle()) == {"wide"}


def test_several_blocked_wants_each_keep_what_they_could_use(world: World):
    busy(world, "big", 8, 1)
    busy(world, "small", 2, 1)
    world.submit("wide", accelerators_per_node=8)
    world.submit("pair", accelerators_per_node=2)
    world.submit("one")
    assert not world.decide().groups
    waiting = world.plan().waiting()
    assert codes(waiting[job_key("pair")]) == ["PRIORITY"]
    assert codes(waiting[job_key("one")]) == ["PRIORITY"]


def test_a_full_pool_is_left_alone_until_something_changes(world: World):
    busy(world, "n1", 1, 1)
    world.submit("waits")
    world.decide()
    before = world.state.desk.planned["local"].plan
    world.tell("on-n1", "ordered started")
    world.decide()
    assert world.state.desk.planned["local"].plan is before
