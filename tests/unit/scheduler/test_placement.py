"""Where jobs go: order, gangs, best fit, devices, preferences, what is charged."""

from typing import Any

import pytest
from tests.unit.scheduler.world import GIB, World, job_key, nodes_of

from trainmaster.core.events import (
    AttemptPlaced,
    AttemptReclaimed,
    Reprioritized,
    Requeued,
)
from trainmaster.core.values import Proof
from trainmaster.scheduler.settings import PLACEMENTS_MAX

pytestmark = pytest.mark.unit


@pytest.fixture
def world() -> World:
    return World()


def test_higher_priority_goes_first(world: World):
    world.node("n1", accelerators=1)
    world.submit("early")
    world.submit("late", priority=10)
    assert nodes_of(world.cycle()) == {"late": ("n1",)}


def test_among_equals_who_came_first_goes_first(world: World):
    world.node("n1", accelerators=1)
    world.submit("b")
    world.submit("a")
    assert nodes_of(world.cycle()) == {"b": ("n1",)}


def test_a_reprioritized_job_changes_its_place(world: World):
    world.node("n1", accelerators=1)
    world.submit("first")
    world.submit("second")
    world.say(job_key("second"), Reprioritized(priority=1))
    assert nodes_of(world.cycle()) == {"second": ("n1",)}


def test_a_retry_keeps_the_place_of_its_submission(world: World):
    world.node("n1", accelerators=1)
    world.submit("first")
    world.settle()
    world.submit("second")
    world.tell("first", "ended reclaimed requeued")
    assert nodes_of(world.cycle()) == {"first": ("n1",)}


def test_a_gang_is_placed_whole_with_its_ranks_in_a_row(world: World):
    world.node("n1", accelerators=4)
    world.node("n2", accelerators=4)
    world.submit("gang", nodes=2, accelerators_per_node=4, ranks_per_node=4)
    members = world.cycle()["gang"].members
    assert [(m.node, m.first_rank, m.ranks) for m in members] == [
        ("n1", 0, 4),
        ("n2", 4, 4),
    ]


def test_a_gang_is_not_placed_in_part(world: World):
    world.node("n1", accelerators=4)
    world.node("n2", accelerators=4)
    world.submit("small")
    world.settle()
    world.submit("gang", nodes=2, accelerators_per_node=4)
    assert not world.decide().groups


def test_whole_nodes_are_kept_whole(world: World):
    for name in ("a", "b", "c"):
        world.node(name, accelerators=8)
    placed: dict[str, AttemptPlaced] = {}
    for number in range(4):
        world.submit(f"small-{number}", accelerators_per_node=2)
        placed.update(world.cycle())
    assert set(nodes_of(placed).values()) == {("a",)}


def test_the_tightest_node_is_taken(world: World):
    world.node("big", accelerators=8)
    world.node("small", accelerators=2)
    world.submit("pair", accelerators_per_node=2)
    assert nodes_of(world.cycle()) == {"pair": ("small",)}


def test_a_partly_used_node_is_taken_before_a_whole_one_of_that_size(world: World):
    world.node("b", accelerators=4)
    world.submit("first", accelerators_per_node=2)
    world.settle()
    world.node("a", accelerators=2)
    world.submit("second", accelerators_per_node=2)
    assert nodes_of(world.cycle()) == {"second": ("b",)}


def test_device_indices_are_taken_lowest_first_and_reused(world: World):
    world.node("n1", accelerators=4)
    for name in ("a", "b", "c"):
        world.submit(name)
    placed = world.settle()
    assert [placed[j].members[0].accelerators for j in "abc"] == [(0,), (1,), (2,)]
    world.tell("b", "ended reclaimed failed")
    world.submit("pair", accelerators_per_node=2)
    assert world.cycle()["pair"].members[0].accelerators == (1, 3)


def test_a_job_without_accelerators_goes_where_there_are_none(world: World):
    world.node("a-gpu", accelerators=8)
    world.node("z-cpu", accelerators=0)
    world.submit("plain", accelerators_per_node=0)
    assert nodes_of(world.cycle()) == {"plain": ("z-cpu",)}


def test_cores_are_charged_to_jobs_without_accelerators(world: World):
    world.node("n1", accelerators=0, cpus=4)
    for number in range(3):
        world.submit(f"plain-{number}", accelerators_per_node=0, cpus_per_node=2)
    assert len(world.settle()) == 2


def test_cores_are_not_charged_to_jobs_with_accelerators(world: World):
    world.node("n1", accelerators=4, cpus=2)
    for number in range(4):
        world.submit(f"gpu-{number}", cpus_per_node=2)
    assert len(world.settle()) == 4


def test_jobs_with_accelerators_leave_the_cores_to_others(world: World):
    world.node("n1", accelerators=4, cpus=2)
    world.submit("gpu", cpus_per_node=2)
    world.settle()
    world.submit("plain", accelerators_per_node=0, cpus_per_node=2)
    assert set(world.cycle()) == {"plain"}


def test_a_job_with_accelerators_needs_a_node_with_its_cores(world: World):
    world.node("n1", accelerators=4, cpus=2)
    world.submit("greedy", cpus_per_node=3)
    assert not world.decide().groups


def test_memory_is_charged_to_everybody_who_asks_for_it(world: World):
    world.node("n1", accelerators=4, memory_bytes=10 * GIB)
    for number in range(3):
        world.submit(f"gpu-{number}", memory_bytes_per_node=4 * GIB)
    assert len(world.settle()) == 2


def test_an_avoided_node_is_only_the_last_choice(world: World):
    world.node("n1", accelerators=2)
    world.submit("job")
    world.settle()
    world.node("n2", accelerators=8)
    world.tell("job", "ended reclaimed")
    world.say(job_key("job"), Requeued(attempt=1, avoid=("n1",)))
    assert nodes_of(world.cycle()) == {"job": ("n2",)}


def test_an_avoided_node_is_used_when_nothing_else_fits(world: World):
    world.node("n1", accelerators=2)
    world.submit("job")
    world.settle()
    world.tell("job", "ended reclaimed")
    world.say(job_key("job"), Requeued(attempt=1, avoid=("n1",)))
    assert nodes_of(world.cycle()) == {"job": ("n1",)}


def test_a_node_that_owes_proof_of_the_same_job_is_never_used(world: World):
    world.node("n1", accelerators=8)
    world.submit("job")
    world.settle()
    world.tell("job", "ended fenced")
    assert not world.decide().groups
    world.node("n2", accelerators=8)
    assert nodes_of(world.cycle()) == {"job": ("n2",)}


def test_a_node_that_owes_proof_is_not_used_after_another_job_used_it(world: World):
    world.node("n1", accelerators=8)
    for name in ("first", "last"):
        world.submit(name, accelerators_per_node=2)
    world.settle()
    for name in ("first", "last"):
        world.tell(name, "ended fenced")
    for name, priority in (("first", 3), ("last", 1)):
        world.say(job_key(name), Reprioritized(priority=priority))
    world.node("n2", accelerators=4)
    world.submit("between", accelerators_per_node=4, priority=2)
    assert nodes_of(world.cycle()) == {
        "first": ("n2",),
        "between": ("n1",),
        "last": ("n2",),
    }


def test_an_old_attempt_stays_charged_until_it_is_reclaimed(world: World):
    world.node("n1", accelerators=1)
    world.submit("job")
    world.settle()
    world.tell("job", "ended fenced")
    world.submit("other")
    assert not world.decide().groups
    proof = Proof(node="n1", how="closed")
    reclaimed = AttemptReclaimed(attempt=1, nodes=("n1",), proofs=(proof,))
    world.say(job_key("job"), reclaimed)
    assert nodes_of(world.cycle()) == {"job": ("n1",)}


def test_pools_are_planned_each_by_itself(world: World):
    world.node("n1", pool="one")
    world.node("n1", pool="two")
    world.submit("a", pool="one")
    world.submit("b", pool="two")
    groups = world.decide().groups
    assert [group[-1].key for group in groups] == [("one",), ("two",)]
    assert len(world.cycle()) == 2


def test_a_plan_holds_what_one_batch_of_the_log_holds(world: World):
    for number in range(130):
        world.node(f"n{number:03}", accelerators=8)
    for number in range(1010):
        world.submit(f"job-{number:04}")
    first = world.decide().groups
    assert [len(group) for group in first] == [PLACEMENTS_MAX + 1]
    assert len(world.cycle()) == PLACEMENTS_MAX
    assert len(world.cycle()) == 1010 - PLACEMENTS_MAX
    assert not world.decide().groups


@pytest.mark.parametrize(
    "spec",
    [
        {"nodes": 0},
        {"nodes": -1},
        {"accelerators_per_node": -1},
        {"cpus_per_node": -5},
        {"ranks_per_node": 2**31 - 1, "nodes": 2},
        {"memory_bytes_per_node": -1},
    ],
    ids=str,
)
def test_a_senseless_request_waits_and_harms_nobody(world: World, spec: dict[str, Any]):
    for name in ("n1", "n2"):
        world.node(name)
    world.submit("senseless", **spec)
    world.submit("plain")
    assert set(world.cycle()) == {"plain"}
