"""Gangs stand near each other and on equal nodes; devices along fast links."""

import pytest
from tests.unit.scheduler.world import World, nodes_of, why

pytestmark = pytest.mark.unit


@pytest.fixture
def world() -> World:
    return World()


def racks(world: World, *counts: int) -> None:
    for rack, count in enumerate(counts):
        for number in range(count):
            facts = {"rack": f"r{rack}", "zone": "z1"}
            world.node(f"r{rack}-n{number}", facts=facts)


def test_a_gang_stands_in_one_rack_the_smallest_that_fits(world: World):
    racks(world, 1, 4, 2)
    world.submit("gang", nodes=2, accelerators_per_node=8, topology="rack")
    assert nodes_of(world.cycle()) == {"gang": ("r2-n0", "r2-n1")}


def test_a_wish_gives_way_to_the_next_wider_level(world: World):
    racks(world, 2, 2)
    world.submit("gang", nodes=3, accelerators_per_node=8, topology="rack")
    assert len(world.cycle()["gang"].members) == 3


def test_a_demand_waits_and_says_so(world: World):
    racks(world, 2, 2)
    world.submit("gang", nodes=3, accelerators_per_node=8, topology="rack!")
    assert why(world, "gang") == {
        "TOPOLOGY": "needs 3 free nodes in one rack; the best of 2 has 2"
    }


def test_racks_of_one_name_in_two_zones_are_two(world: World):
    for zone in ("a", "b"):
        world.node(f"n-{zone}", facts={"rack": "r1", "zone": zone})
    world.submit("gang", nodes=2, topology="rack!")
    assert not world.decide().groups


def test_a_gang_gets_nodes_with_equal_drivers(world: World):
    world.node("n1", facts={"driver": "550"})
    world.node("n2", facts={"driver": "560"})
    world.node("n3", facts={"driver": "560"})
    world.submit("gang", nodes=2, accelerators_per_node=8)
    assert nodes_of(world.cycle()) == {"gang": ("n2", "n3")}


def test_too_few_equal_nodes_are_named_as_the_reason(world: World):
    world.node("n1", facts={"driver": "550"})
    world.node("n2", facts={"driver": "560"})
    world.submit("gang", nodes=2)
    assert list(why(world, "gang")) == ["NODE_FACTS"]


def test_only_nodes_with_a_wanted_accelerator_are_used(world: World):
    world.node("n1", facts={"accelerator": "a100"})
    world.node("n2", facts={"accelerator": "h100"})
    world.submit("job", accelerator_types=("h200", "h100"))
    assert nodes_of(world.cycle()) == {"job": ("n2",)}


def test_an_accelerator_that_no_node_has_is_named_with_counts(world: World):
    for number in range(3):
        world.node(f"n{number}", facts={"accelerator": "a100"})
    world.submit("job", accelerator_types=("h200",))
    assert why(world, "job") == {
        "NODE_FACTS": "needs 1 nodes with h200; 0 of 3 fitting nodes have it"
    }


def test_the_preferred_type_is_taken_first(world: World):
    world.node("n1", accelerators=4, facts={"accelerator": "a100"})
    world.node("n2", accelerators=8, facts={"accelerator": "h100"})
    world.submit("job", accelerator_types=("h100", "a100"))
    assert nodes_of(world.cycle()) == {"job": ("n2",)}


def test_devices_are_taken_from_one_island(world: World):
    world.node("n1", accelerators=8, facts={"nvlink_islands": "0,1,2,3;4,5,6,7"})
    world.submit("one", accelerators_per_node=3)
    world.submit("two", accelerators_per_node=3)
    placed = world.settle()
    assert [placed[j].members[0].accelerators for j in ("one", "two")] == [
        (0, 1, 2),
        (4, 5, 6),
    ]


def test_islands_that_make_no_sense_are_left_out(world: World):
    facts = {"nvlink_islands": "0,99,x;;0,1;²"}
    world.node("n1", accelerators=2, facts=facts)
    world.submit("one", accelerators_per_node=2)
    assert world.cycle()["one"].members[0].accelerators == (0, 1)
