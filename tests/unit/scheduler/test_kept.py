"""What is kept for whom: backfill, retries, spares, windows, reservations."""

from datetime import timedelta

import pytest
from tests.unit.scheduler.world import POOL, World, codes, job_key, nodes_of, why

from trainmaster.core.events import CancelRequested, Requeued
from trainmaster.core.facts import (
    MaintenanceSet,
    NodeLost,
    PoolTuned,
    ReservationSet,
)
from trainmaster.core.ids import NodeKey, PoolKey
from trainmaster.core.spec import RetryBudgets

pytestmark = pytest.mark.unit


@pytest.fixture
def world() -> World:
    return World()


def blocked_head(world: World) -> None:
    """Two nodes; one is busy for an hour, and a head waits for both."""
    for name in ("n1", "n2"):
        world.node(name, accelerators=8)
    world.submit("hour", accelerators_per_node=8, time_limit_seconds=3600)
    world.settle()
    world.submit("head", nodes=2, accelerators_per_node=8)


# ---------------------------------------------------------------------- backfill


def test_a_job_that_is_over_in_time_is_filled_in(world: World):
    blocked_head(world)
    world.submit("short", accelerators_per_node=8, time_limit_seconds=600)
    assert nodes_of(world.cycle()) == {"short": ("n2",)}


def test_a_job_that_would_delay_the_head_waits(world: World):
    blocked_head(world)
    world.submit("long", accelerators_per_node=8, time_limit_seconds=7200)
    world.submit("endless", accelerators_per_node=1)
    assert not world.decide().groups
    assert list(why(world, "endless")) == ["PRIORITY"]


def test_other_nodes_than_the_heads_are_free_for_all(world: World):
    blocked_head(world)
    world.node("n3", accelerators=8)
    world.submit("other", accelerators_per_node=8)
    placed = world.cycle()
    assert set(placed) == {"head"}
    assert len(placed["head"].members) == 2


def test_a_head_knows_when_it_starts_at_the_earliest(world: World):
    blocked_head(world)
    told = world.plan().waiting()[job_key("head")]
    placed_at = world.job("hour").placed_at
    assert placed_at is not None
    assert told.earliest_start == placed_at + timedelta(seconds=3610)
    assert told.confidence == "limit"


def test_without_a_limit_nobody_knows_when(world: World):
    world.node("n1", accelerators=8)
    world.submit("runs", accelerators_per_node=8)
    world.settle()
    world.submit("head", accelerators_per_node=8)
    told = world.plan().waiting()[job_key("head")]
    assert (told.earliest_start, told.confidence) == (None, "unknown")


def test_what_the_head_leaves_over_can_be_used(world: World):
    world.node("n1", accelerators=8)
    world.submit("a", accelerators_per_node=6, time_limit_seconds=3600)
    world.settle()
    world.submit("head", accelerators_per_node=4)
    world.submit("small", accelerators_per_node=2)
    assert nodes_of(world.cycle()) == {"small": ("n1",)}


# ------------------------------------------------------------------------ retries


def test_a_retry_finds_its_nodes_kept(world: World):
    world.node("n1", accelerators=8)
    world.submit("job", accelerators_per_node=8)
    world.settle()
    world.submit("other")
    world.tell("job", "ended reclaimed")
    assert not world.decide().groups
    assert list(why(world, "other")) == ["RESERVED"]
    world.tell("job", "requeued")
    assert nodes_of(world.cycle()) == {"job": ("n1",)}


def test_nodes_are_kept_for_a_retry_only_for_a_while(world: World):
    world.node("n1", accelerators=8)
    retry = RetryBudgets(hold_seconds=60)
    world.submit("job", accelerators_per_node=8, retry=retry)
    world.settle()
    world.submit("other")
    world.tell("job", "ended reclaimed")
    wake_at = world.decide().wake_at
    ended = world.job("job").ended
    assert ended is not None
    assert wake_at == ended.at + timedelta(seconds=60)
    assert set(world.cycle(at=wake_at)) == {"other"}


@pytest.mark.parametrize("words", ["failed", "cancel"])
def test_a_job_that_does_not_come_back_keeps_nothing(world: World, words: str):
    world.node("n1", accelerators=8)
    world.submit("job", accelerators_per_node=8)
    world.settle()
    world.submit("other")
    world.tell("job", "ended reclaimed")
    if words == "cancel":
        world.say(job_key("job"), CancelRequested())
    else:
        world.tell("job", words)
    assert set(world.cycle()) == {"other"}


def test_a_retry_outranks_its_class_and_no_higher_one(world: World):
    world.node("n1", accelerators=2)
    world.submit("early", accelerators_per_node=2)
    world.settle()
    world.submit("first")
    world.tell("early", "ended reclaimed")
    world.say(job_key("early"), Requeued(attempt=1, avoid=("n1",)))
    world.submit("urgent", priority=1)
    plan = world.plan()
    assert [p.request.key.job for p in plan.placements] == ["urgent"]
    assert "job early is ahead" in why(world, "first")["PRIORITY"]


def test_a_retry_takes_a_spare_for_its_lost_node(world: World):
    for name in ("n1", "n2", "n3"):
        world.node(name, accelerators=8)
    world.say(PoolKey(POOL), PoolTuned(spare_nodes=1))
    world.submit("gang", nodes=2, accelerators_per_node=8)
    world.submit("other", accelerators_per_node=8)
    assert set(world.settle()) == {"gang"}
    assert codes(world.plan().waiting()[job_key("other")])[0] == "RESERVED"
    world.say(NodeKey(POOL, "n2"), NodeLost())
    world.tell("gang", "ended reclaimed requeued")
    assert nodes_of(world.cycle()) == {"gang": ("n1", "n3")}


# ------------------------------------------------------------ windows, reservations


def maintenance(world: World, *nodes: str, hours: float) -> None:
    starts_at = world.now + timedelta(hours=hours)
    ends_at = starts_at + timedelta(hours=1)
    event = MaintenanceSet(
        name="patch", nodes=nodes, starts_at=starts_at, ends_at=ends_at
    )
    world.say(PoolKey(POOL), event)


def test_no_job_enters_a_window_that_it_might_cross(world: World):
    world.node("n1")
    maintenance(world, "n1", hours=2)
    world.submit("endless")
    world.submit("long", time_limit_seconds=3 * 3600)
    world.submit("short", time_limit_seconds=3600)
    assert set(world.cycle()) == {"short"}
    assert "WINDOW" in why(world, "endless")


def test_a_window_that_is_over_lets_everybody_in(world: World):
    world.node("n1")
    maintenance(world, hours=0)
    world.submit("job")
    assert not world.decide().groups
    due = world.decide().wake_at
    assert due is not None
    assert set(world.cycle(at=due)) == {"job"}


def test_a_window_called_off_keeps_nobody_out(world: World):
    world.node("n1")
    maintenance(world, hours=0)
    world.say(PoolKey(POOL), MaintenanceSet(name="patch", withdrawn=True))
    world.submit("job")
    assert set(world.cycle()) == {"job"}


def test_reserved_nodes_are_for_the_team_they_are_reserved_for(world: World):
    world.node("n1")
    world.say(PoolKey(POOL), ReservationSet(name="demo", nodes=("n1",), team="a"))
    world.submit("other", team="b")
    key = world.submit("ours", team="a")
    assert set(world.cycle()) == {"ours"}
    told = world.plan().waiting()[job_key("other", "b")]
    assert "1 free nodes are kept for reservation demo" in told.reasons[0].message
    assert key in world.state.jobs
