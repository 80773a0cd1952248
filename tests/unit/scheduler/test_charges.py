"""What is charged on a node, even by a log that nobody should have written."""

import pytest
from tests.unit.scheduler.world import World, job_key

from trainmaster.core.events import AttemptPlaced
from trainmaster.core.ids import NodeKey
from trainmaster.core.values import MemberSlot

pytestmark = pytest.mark.unit

SLOT = MemberSlot(node="n1", accelerators=(0,), ranks=1)


def test_a_device_with_two_holders_is_free_when_both_are_gone():
    world = World()
    world.node("n1", accelerators=1)
    for name in ("a", "b"):
        world.submit(name)
        placed = AttemptPlaced(attempt=1, pool="local", members=(SLOT,))
        world.say(job_key(name), placed)
    world.submit("c")
    world.tell("a", "ended reclaimed failed")
    assert not world.decide().groups
    world.tell("b", "ended reclaimed failed")
    assert set(world.cycle()) == {"c"}


def test_a_charge_follows_the_pool_a_job_was_placed_in():
    world = World()
    world.node("n1", accelerators=1, pool="other")
    world.submit("a")
    world.say(job_key("a"), AttemptPlaced(attempt=1, pool="other", members=(SLOT,)))
    assert set(world.state.desk.inventory.charges) == {NodeKey("other", "n1")}
    world.tell("a", "ended reclaimed")
    assert not world.state.desk.inventory.charges


def test_jobs_that_hold_nothing_leave_nothing_behind():
    world = World()
    world.node("n1")
    for name in ("a", "b"):
        world.submit(name, accelerators_per_node=0, cpus_per_node=0)
    world.settle()
    for name in ("a", "b"):
        world.tell(name, "ended reclaimed succeeded")
    assert not world.state.desk.inventory.charges
