"""What is told to the foremost: changes with which they would start, all true."""

import pytest
from tests.unit.scheduler.world import World, job_key, why

from trainmaster.core.messages import WaitReasons
from trainmaster.core.spec import JobSpec

pytestmark = pytest.mark.unit


@pytest.fixture
def world() -> World:
    return World()


def told(world: World, name: str) -> WaitReasons:
    world.decide()
    return world.state.desk.waiting[job_key(name)]


def changes(world: World, name: str) -> list[str]:
    return [each.change for each in told(world, name).counterfactuals]


def half_full(world: World) -> None:
    for name in ("n1", "n2"):
        world.node(name, accelerators=8)
        world.submit(f"on-{name}", accelerators_per_node=5)
        world.settle()
        world.submit(f"rest-{name}", accelerators_per_node=3)
    world.settle()
    for name in ("n1", "n2"):
        world.tell(f"on-{name}", "ended reclaimed failed")


def test_fragmentation_is_told_with_the_shape_of_what_is_free(world: World):
    for name in ("n1", "n2"):
        world.node(name, accelerators=8)
        world.submit(f"on-{name}", accelerators_per_node=4)
        world.submit(f"also-{name}", accelerators_per_node=4)
    world.settle()
    for name in ("on-n1", "also-n2"):
        world.tell(name, "ended reclaimed failed")
    world.submit("wide", accelerators_per_node=8)
    world.submit("small")
    assert why(world, "wide")["FRAGMENTED"] == "8 accelerators are free, but as 2x4"

    assert set(world.cycle()) == {"small"}


def test_at_least_two_changes_are_named(world: World):
    half_full(world)
    world.submit("wide", accelerators_per_node=8)
    assert changes(world, "wide") == [
        "nodes=2,accelerators_per_node=4",
        "accelerators_per_node=4",
        "accelerators_per_node=2",
    ]


def test_a_time_limit_that_would_help_is_named(world: World):
    for name in ("n1", "n2"):
        world.node(name, accelerators=8)
    world.submit("runs", accelerators_per_node=8, time_limit_seconds=7200)
    world.settle()
    world.submit("head", nodes=2, accelerators_per_node=8)
    world.submit("behind", accelerators_per_node=8)
    assert "time_limit=1h" in changes(world, "behind")
    assert "nodes=1" in changes(world, "head")


def test_another_pool_that_has_room_is_named(world: World):
    world.node("n1", accelerators=1)
    world.submit("runs")
    world.settle()
    world.node("other", accelerators=1, pool="spot")
    world.submit("waits")
    assert changes(world, "waits") == ["pool=spot"]


def test_what_would_not_help_is_not_named(world: World):
    world.node("n1", accelerators=1)
    world.submit("runs")
    world.settle()
    world.submit("waits")
    assert changes(world, "waits") == []


def test_every_change_that_is_named_is_true(world: World):
    half_full(world)
    world.submit("wide", nodes=2, accelerators_per_node=8)
    named = changes(world, "wide")
    assert named
    for change in named:
        parts = (part.split("=") for part in change.split(","))
        update = {key: int(value) for key, value in parts}
        again = World()
        for entry in world.log:
            spec = getattr(entry.event, "spec", None)
            event = entry.event
            if isinstance(spec, JobSpec) and entry.key == job_key("wide"):
                changed = spec.model_copy(update=update)
                event = event.model_copy(update={"spec": changed})
            again.say(entry.key, event)
        assert set(again.cycle()) == {"wide"}
