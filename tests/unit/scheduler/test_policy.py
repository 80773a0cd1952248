"""The scheduler as a service: its groups, its memory, its rows, its reasons."""

from datetime import timedelta

import pytest
from tests.unit.scheduler.world import World, job_key

from trainmaster.core import subjects
from trainmaster.core.events import AttemptPlaced, PlanMade
from trainmaster.core.facts import PoolCreated, TeamCreated, TeamPaused
from trainmaster.core.ids import PlanKey, PoolKey, TeamKey
from trainmaster.core.moment import Moment
from trainmaster.runtime.tables import write_key
from trainmaster.scheduler.published import owner_of, owners, wanted
from trainmaster.scheduler.settings import EXPLAIN_SECONDS, PLACEMENTS_MAX
from trainmaster.scheduler.state import State
from trainmaster.scheduler.store import tables
from trainmaster.testkit.builders import an_entry

pytestmark = pytest.mark.unit


@pytest.fixture
def world() -> World:
    return World()


def reloaded(world: World) -> World:
    """The same world after its service was restarted: only rows are left."""
    kept = tables()
    names = [("job", k) for k in world.state.jobs]
    names += [("node", k) for k in world.state.nodes]
    names += [("team", k) for k in world.state.teams]
    names += [("pool", k) for k in world.state.pools]
    names += [("use", k) for k in world.state.use]
    names += [("stopped", k) for k in world.state.stopped]
    names += [("saved", k) for k in world.state.saved]
    documents: dict[str, dict[str, str]] = {}
    for (name, key), body in kept.dump(world.state, names).items():
        assert body is not None
        documents.setdefault(name, {})[key] = body
    return World(state=kept.load(documents), log=list(world.log), later=world.later)


def test_a_plan_is_one_group_that_ends_with_its_marker(world: World):
    world.node("n1")
    for name in ("a", "b"):
        world.submit(name)
    (group,) = world.decide().groups
    assert [write.key for write in group[:-1]] == [job_key("a"), job_key("b")]
    assert group[-1].key == PlanKey("local")
    assert group[-1].event == PlanMade(placements=2)


def test_a_refused_plan_is_decided_again_word_for_word(world: World):
    world.node("n1")
    world.submit("a")
    assert world.decide() == world.decide()


def test_a_stored_plan_is_not_decided_again(world: World):
    world.node("n1")
    world.submit("a")
    world.cycle()
    assert not world.decide().groups


def test_a_placement_names_the_next_attempt_and_the_pool(world: World):
    world.node("n1")
    world.submit("a")
    world.settle()
    world.tell("a", "ended reclaimed requeued")
    placed = world.cycle()["a"]
    assert isinstance(placed, AttemptPlaced)
    assert (placed.attempt, placed.pool) == (2, "local")


@pytest.mark.parametrize("words", ["held", "cancel"])
def test_a_job_that_may_not_start_is_not_placed(world: World, words: str):
    world.submit("a")
    world.tell("a", words)
    world.node("n1")
    assert not world.decide().groups


def test_a_held_job_is_placed_after_its_release(world: World):
    world.submit("a", hold=True)
    world.node("n1")
    assert not world.decide().groups
    world.tell("a", "released")
    assert set(world.cycle()) == {"a"}


def test_a_restarted_scheduler_decides_the_same(world: World):
    for name in ("n1", "n2"):
        world.node(name, accelerators=4)
    world.say(PoolKey("local"), PoolCreated(backend="process"))
    world.say(TeamKey("slow"), TeamPaused(paused=True))
    for number in range(5):
        world.submit(f"job-{number}", accelerators_per_node=2)
    world.cycle()
    world.tell("job-1", "ended reclaimed requeued")
    world.submit("paused", team="slow")
    again = reloaded(world)
    assert again.plan() == world.plan()
    assert again.decide() == world.decide()


def test_folding_a_log_twice_gives_the_same_plan(world: World):
    world.node("n1", accelerators=2)
    for number in range(4):
        world.submit(f"job-{number}")
    world.cycle()
    world.tell("job-0", "ended reclaimed requeued")
    again = World()
    for entry in world.log:
        tuple(again.policy.fold(again.state, entry))
    assert again.plan(at=world.now) == world.plan()


def test_fold_names_only_what_it_changed(world: World):
    policy, state = world.policy, State()
    created = an_entry(TeamCreated(), key=TeamKey("new"))
    marker = an_entry(PlanMade(placements=1), key=PlanKey("local"))
    pool = an_entry(PoolCreated(), key=PoolKey("local"))
    assert tuple(policy.fold(state, created)) == ()
    assert tuple(policy.fold(state, marker)) == ()
    assert tuple(policy.fold(state, pool)) == (("pool", PoolKey("local")),)


def test_a_void_event_changes_nothing(world: World):
    world.node("n1")
    world.submit("a")
    placed = an_entry(AttemptPlaced(attempt=7), key=job_key("a"), seq=99)
    before = world.plan()
    assert tuple(world.policy.fold(world.state, placed)) == ()
    assert world.plan() == before


# ----------------------------------------------------------------- published reasons


def published(world: World, *, everything: bool = False) -> dict[str, bytes]:
    """What the effect would be told now, empty for what must be purged."""
    found: dict[str, bytes] = {}
    for owner in owners(world.state, None if everything else ()):
        messages = wanted(world.state, owner)
        found[owner] = b"".join(m.to_json() for m in messages.values())
    return found


def test_a_waiting_job_is_told_why_and_no_more_once_it_is_placed(world: World):
    world.submit("a")
    world.decide()
    assert b"NO_NODES" in published(world)["a"]
    assert published(world) == {}
    world.node("n1")
    world.cycle()
    assert published(world) == {"a": b""}


def test_a_cancelled_job_is_told_nothing_any_more(world: World):
    world.submit("a")
    world.decide()
    published(world)
    world.tell("a", "cancel cancelled archived")
    assert published(world) == {"a": b""}


def test_a_new_leader_publishes_all_reasons(world: World):
    for name in ("a", "b"):
        world.submit(name)
    world.decide()
    published(world)
    assert set(published(world, everything=True)) == {"a", "b"}


def test_a_job_that_starts_at_once_is_never_told_to_wait(world: World):
    world.node("n1")
    world.submit("a")
    world.cycle()
    assert published(world) == {}


def test_nobody_is_told_to_wait_while_more_can_be_placed_at_once(world: World):
    for number in range(130):
        world.node(f"n{number:03}")
    for number in range(PLACEMENTS_MAX + 5):
        world.submit(f"job-{number:04}")
    assert len(world.cycle()) == PLACEMENTS_MAX
    assert published(world) == {}
    assert len(world.cycle()) == 5
    assert published(world) == {}


def test_reasons_are_revised_at_most_once_a_second(world: World):
    world.submit("a")
    at = world.now
    world.decide(at)
    published(world)
    world.submit("b")
    soon, due = at + timedelta(seconds=0.1), at + timedelta(seconds=EXPLAIN_SECONDS)
    decision = world.policy.decide(world.state, {}, Moment(at=soon))
    assert (published(world), decision.wake_at) == ({}, due)
    world.decide(due)
    assert "b" in published(world)


def test_the_subject_of_a_reason_names_its_job():
    assert owner_of(subjects.waiting(job_key("a"))) == "a"
    assert owner_of(subjects.progress(job_key("a"))) == ""
    assert write_key(job_key("a")) == "default.a"
