"""Which nodes are used: registered ones in service, as large as they said last."""

import pytest
from tests.unit.scheduler.world import World, nodes_of

from trainmaster.core.facts import (
    Capacity,
    Drained,
    DrainRequested,
    DrainWithdrawn,
    NodeLost,
    NodeQuarantined,
    NodeRegistered,
    NodeRestored,
)
from trainmaster.core.ids import NodeKey

pytestmark = pytest.mark.unit


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize(
    "fact",
    [NodeLost(), NodeQuarantined(), DrainRequested(), Drained()],
    ids=lambda fact: type(fact).__name__,
)
def test_a_node_out_of_service_gets_nothing(
    world: World,
    fact: NodeLost | NodeQuarantined | DrainRequested | Drained,
):
    world.node("n1")
    world.say(NodeKey("local", "n1"), fact)
    world.submit("job")
    assert not world.decide().groups


def test_a_lost_node_is_used_again_once_it_registers(world: World):
    world.node("n1")
    world.say(NodeKey("local", "n1"), NodeLost())
    world.submit("job")
    assert not world.decide().groups
    world.node("n1")
    assert nodes_of(world.cycle()) == {"job": ("n1",)}


def test_registering_again_does_not_end_a_drain_but_restoring_does(world: World):
    world.node("n1")
    world.say(NodeKey("local", "n1"), DrainRequested())
    world.node("n1")
    world.submit("job")
    assert not world.decide().groups
    world.say(NodeKey("local", "n1"), NodeRestored())
    assert nodes_of(world.cycle()) == {"job": ("n1",)}


def test_a_drained_node_is_used_again_once_the_drain_is_withdrawn(world: World):
    world.node("n1")
    for fact in (DrainRequested(), Drained()):
        world.say(NodeKey("local", "n1"), fact)
    world.submit("job")
    assert not world.decide().groups
    world.say(NodeKey("local", "n1"), DrainWithdrawn())
    assert nodes_of(world.cycle()) == {"job": ("n1",)}


def test_a_node_that_was_never_registered_gives_nothing(world: World):
    world.say(NodeKey("local", "n1"), NodeRestored())
    world.submit("job")
    assert not world.decide().groups


def test_a_node_that_shrinks_gives_only_what_it_has_now(world: World):
    world.node("n1", accelerators=4)
    world.submit("a")
    world.submit("b")
    world.settle()
    world.node("n1", accelerators=2)
    world.submit("c")
    assert not world.decide().groups


def test_a_node_that_claims_endless_devices_is_bounded(world: World):
    capacity = Capacity(accelerators=2**31 - 1, cpus=1)
    world.say(NodeKey("local", "n1"), NodeRegistered(capacity=capacity))
    world.submit("job")
    assert nodes_of(world.cycle()) == {"job": ("n1",)}
