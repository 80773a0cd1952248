"""Why a job waits: every reason with its code and numbers, and texts that stay."""

from datetime import timedelta

import pytest
from tests.unit.scheduler.world import World, codes, job_key, why

from trainmaster.core.events import CheckpointChosen, Requeued
from trainmaster.core.facts import DrainRequested, NodeLost, TeamPaused
from trainmaster.core.ids import NodeKey, TeamKey
from trainmaster.core.spec import CheckpointSpec
from trainmaster.scheduler.settings import EXPLAINED_MAX, PLACEMENTS_MAX

pytestmark = pytest.mark.unit


@pytest.fixture
def world() -> World:
    return World()


def test_without_nodes_the_pool_is_named_empty(world: World):
    world.submit("job")
    assert why(world, "job") == {"NO_NODES": "the pool has no registered node"}


def test_what_never_fits_says_what_there_is(world: World):
    world.node("n1", accelerators=4)
    world.node("n2", accelerators=8)
    world.submit("job", nodes=2, accelerators_per_node=8)
    assert why(world, "job") == {
        "NEVER_FITS": "needs 2 nodes with 8 accelerators; the pool has 1 such "
        "(largest: 8 accelerators, 64 cpus, 549755813888 bytes of memory)"
    }


def test_a_full_pool_says_how_many_nodes_have_room(world: World):
    for name in ("n1", "n2"):
        world.node(name, accelerators=4)
    world.submit("first", accelerators_per_node=3)
    world.settle()
    world.submit("gang", nodes=2, accelerators_per_node=2)
    assert why(world, "gang") == {
        "CAPACITY": "needs 2 nodes with 2 accelerators free, 1 of 2 are",
        "FRAGMENTED": "5 accelerators are free, but as 1x4, 1x1",
    }


def test_nodes_that_are_away_are_named_with_their_trouble(world: World):
    for name in ("n1", "n2", "n3"):
        world.node(name)
    world.say(NodeKey("local", "n1"), DrainRequested())
    world.say(NodeKey("local", "n3"), NodeLost())
    world.submit("gang", nodes=2)
    assert why(world, "gang") == {
        "NODE_STATE": "needs 2 of 3 fitting nodes, but these are away: "
        "n1 draining, n3 lost"
    }


def test_a_long_list_of_nodes_is_cut(world: World):
    for number in range(8):
        world.node(f"n{number}")
        world.say(NodeKey("local", f"n{number}"), NodeLost())
    world.submit("job")
    assert why(world, "job")["NODE_STATE"].endswith("n4 lost and 3 more")


def test_all_reasons_are_given_at_once(world: World):
    for name in ("n1", "n2", "n3"):
        world.node(name)
    world.submit("whole", accelerators_per_node=8)
    world.settle()
    world.say(NodeKey("local", "n3"), NodeLost())
    world.submit("gang", nodes=3, accelerators_per_node=8)
    assert list(why(world, "gang")) == ["NODE_STATE", "CAPACITY"]


def test_a_node_that_owes_proof_is_named(world: World):
    world.node("n1")
    world.submit("job")
    world.settle()
    world.tell("job", "ended fenced")
    assert why(world, "job") == {
        "PROOF": "an older attempt of this job may still run on n1"
    }


def test_who_is_ahead_is_named_with_priority_and_time(world: World):
    world.node("n1", accelerators=1)
    world.submit("runs")
    world.settle()
    world.submit("head", priority=5)
    world.submit("behind", priority=5)
    assert why(world, "behind")["PRIORITY"] == (
        "job head is ahead: priority 5, submitted 2026-01-01 00:00:05 UTC"
    )
    assert "PRIORITY" not in why(world, "head")


def test_a_job_backs_off_until_its_time_has_come(world: World):
    world.node("n1")
    world.submit("job")
    world.settle()
    world.tell("job", "ended reclaimed")
    later = world.now + timedelta(seconds=60)
    world.say(job_key("job"), Requeued(attempt=1, not_before=later))
    assert why(world, "job") == {
        "BACKOFF": f"backs off until {later:%Y-%m-%d %H:%M:%S} UTC"
    }
    decision = world.decide()
    assert not decision.groups
    assert decision.wake_at == later
    assert world.decide(at=later).groups


def test_a_job_that_backs_off_holds_nobody_up(world: World):
    world.node("n1", accelerators=1)
    world.submit("job")
    world.settle()
    world.tell("job", "ended reclaimed")
    later = world.now + timedelta(seconds=60)
    world.say(job_key("job"), Requeued(attempt=1, not_before=later))
    world.submit("other")
    assert set(world.cycle()) == {"other"}


def test_a_gated_job_also_learns_what_else_is_missing(world: World):
    world.node("n1", accelerators=1)
    world.submit("runs")
    world.settle()
    world.say(TeamKey("slow"), TeamPaused(paused=True))
    world.submit("job", team="slow", accelerators_per_node=1)
    waiting = world.plan().waiting()[job_key("job", "slow")]
    assert codes(waiting) == ["PAUSED", "CAPACITY"]


def test_a_paused_team_waits_and_says_until_when(world: World):
    world.node("n1")
    until = world.now + timedelta(hours=1)
    world.say(TeamKey("slow"), TeamPaused(paused=True, until=until))
    key = world.submit("job", team="slow")
    world.submit("other")
    reasons = world.plan().waiting()[key].reasons
    assert [r.message for r in reasons] == [
        "team slow is paused until 2026-01-01 01:00:01 UTC"
    ]
    assert set(world.cycle()) == {"other"}
    assert world.decide().wake_at == until
    assert set(world.cycle(at=until)) == {"job"}


def test_a_team_goes_on_when_the_pause_is_lifted(world: World):
    world.node("n1")
    world.say(TeamKey("slow"), TeamPaused(paused=True))
    world.submit("job", team="slow")
    assert not world.decide().groups
    world.say(TeamKey("slow"), TeamPaused(paused=False))
    assert set(world.cycle()) == {"job"}


def test_a_first_attempt_waits_for_its_restore_point(world: World):
    world.node("n1")
    checkpoint = CheckpointSpec(resume_from="/runs/old")
    key = world.submit("job", checkpoint=checkpoint)
    assert why(world, "job") == {
        "RESTORE_POINT": "waits for the restore point in /runs/old"
    }
    assert not world.decide().groups
    world.say(key, CheckpointChosen(attempt=0))
    assert set(world.cycle()) == {"job"}


def test_jobs_beyond_a_full_plan_are_told_that_the_next_follows(world: World):
    for number in range(130):
        world.node(f"n{number:03}")
    for number in range(PLACEMENTS_MAX + 5):
        world.submit(f"job-{number:04}")
    plan = world.plan()
    assert plan.full
    assert {r.code for w in plan.waiting().values() for r in w.reasons} == {"NEXT_PLAN"}


def test_the_foremost_jobs_know_their_position(world: World):
    world.node("n1", accelerators=1)
    for number in range(EXPLAINED_MAX + 10):
        world.submit(f"job-{number:04}")
    world.settle()
    waiting = world.plan().waiting()
    assert waiting[job_key("job-0001")].position == 1
    assert waiting[job_key(f"job-{EXPLAINED_MAX:04}")].position == EXPLAINED_MAX
    assert waiting[job_key(f"job-{EXPLAINED_MAX + 1:04}")].position == 0


def test_moving_up_does_not_change_what_those_far_behind_are_told(world: World):
    world.node("n1", accelerators=2)
    for number in range(2_000):
        world.submit(f"job-{number:04}")
    world.settle()
    world.state.desk.take_revised()
    world.tell("job-0000", "ordered started ended reclaimed failed")
    assert set(world.cycle(at=world.now + timedelta(seconds=2))) == {"job-0002"}
    world.decide(at=world.now + timedelta(seconds=4))
    revised = world.state.desk.take_revised()
    assert 0 < len(revised) <= EXPLAINED_MAX + 2


def test_a_text_far_behind_has_no_numbers_that_move(world: World):
    world.node("n1", accelerators=2)
    for number in range(EXPLAINED_MAX + 10):
        world.submit(f"job-{number:04}")
    world.settle()
    last = f"job-{EXPLAINED_MAX + 9:04}"
    assert why(world, last) == {
        "CAPACITY": "needs 1 node with 1 accelerators free",
        "PRIORITY": f"at least {EXPLAINED_MAX} jobs are ahead",
    }
