"""What holds for every history of a pool that this scheduler has planned."""

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.scheduler.test_plan_properties import specs
from tests.unit.scheduler.world import World

from trainmaster.core.envelope import Entry
from trainmaster.core.events import AttemptPlaced, Event, PlanMade, Submitted
from trainmaster.core.facts import (
    Capacity,
    Drained,
    DrainRequested,
    NodeLost,
    NodeQuarantined,
    NodeRegistered,
    NodeRestored,
    TeamPaused,
)
from trainmaster.core.ids import JobId, JobKey, Key, NodeKey, TeamKey
from trainmaster.core.job import evolve
from trainmaster.core.record import Job, JobState
from trainmaster.testkit.builders import START, WORDS, said
from trainmaster.testkit.replay import replay
from trainmaster.testkit.rules import check_history, voids
from trainmaster.testkit.strategies import events, logs

pytestmark = pytest.mark.unit

some = settings(max_examples=60, deadline=None)
NODES = [NodeKey("local", f"n{number}") for number in range(1, 5)]
_NODE_FACTS = st.sampled_from(
    [
        NodeRegistered(capacity=Capacity(accelerators=4, cpus=4)),
        NodeRegistered(capacity=Capacity(accelerators=4, cpus=4)),
        NodeLost(),
        DrainRequested(),
        Drained(),
        NodeQuarantined(),
        NodeRestored(),
    ]
)


def _step(draw: st.DrawFn, world: World) -> None:
    match draw(st.integers(0, 6)):
        case 0:
            world.say(draw(st.sampled_from(NODES)), draw(_NODE_FACTS))
        case 1 | 2:
            key = JobKey("default", JobId(f"job-{len(world.log)}"))
            world.say(key, Submitted(spec=draw(specs())))
        case 3 if world.state.jobs:
            job = draw(st.sampled_from(sorted(world.state.jobs.items())))[1]
            word = draw(st.sampled_from(_words(job)))
            world.say(job.key, said(job, word, spec=job.spec))
        case 4:
            paused = TeamPaused(paused=draw(st.booleans()))
            world.say(TeamKey("default"), paused)
        case _:
            world.cycle()


def _words(job: Job) -> list[str]:
    """Whatever comes, but what is cancelled was asked for, what is archived over."""
    over = job.verdict_given and not any(job.unreclaimed.values())
    never = {"placed", *(() if over else ("archived",))}
    return sorted(set(WORDS) - never - (set() if job.cancel else {"cancelled"}))


@st.composite
def histories(draw: st.DrawFn) -> World:
    """A log of a living pool that this scheduler has planned."""
    world = World()
    for key in NODES[:2]:
        world.say(key, NodeRegistered(capacity=Capacity(accelerators=4, cpus=4)))
    for _ in range(draw(st.integers(1, 60))):
        _step(draw, world)
    return world


@some
@given(histories())
def test_every_history_keeps_the_rules(world: World):
    assert check_history(world.log) == []
    ours = [v for v in voids(world.log) if " attempt_placed: " in v]
    assert ours == []


@some
@given(histories())
def test_charges_equal_what_is_not_reclaimed(world: World):
    held: dict[NodeKey, list[int]] = {}
    for job in replay(world.log).jobs.values():
        for members in job.unreclaimed.values():
            for member in members:
                key = NodeKey(job.pool, member.node)
                held.setdefault(key, []).extend(member.accelerators)
    charges = world.state.desk.inventory.charges
    charged = {k: sorted(c.devices.elements()) for k, c in charges.items()}
    wanted = {k: sorted(v) for k, v in held.items()}
    assert {k: v for k, v in charged.items() if v} == {
        k: v for k, v in wanted.items() if v
    }


@some
@given(histories())
def test_every_waiting_job_has_a_reason_or_is_placed_now(world: World):
    placed = {
        write.key
        for group in world.decide().groups
        for write in group
        if not isinstance(write.event, PlanMade)
    }
    world.decide(at=world.now + timedelta(seconds=5))
    waiting = {job.key for job in world.state.jobs.in_state(JobState.QUEUED)}
    assert waiting - placed == set(world.state.desk.waiting) - placed


@some
@given(histories())
def test_once_stored_a_plan_leaves_nothing_to_place(world: World):
    world.settle()
    assert not world.decide().groups


@some
@given(logs(wild=True))
def test_decide_never_names_an_event_that_evolve_voids(entries: list[Entry]):
    world = World()
    for key in (*NODES, NodeKey("local", "n1-1")):
        world.say(key, NodeRegistered(capacity=Capacity(accelerators=4, cpus=4)))
    for entry in entries:
        world.say(entry.key, entry.event)
        for write in (write for group in world.decide().groups for write in group):
            if isinstance(write.event, AttemptPlaced) and isinstance(write.key, JobKey):
                job = world.state.jobs[write.key]
                assert isinstance(evolve(job, write.event, START), Job)


def _key_for(event: Event, number: int) -> Key | None:
    keys: dict[str, Key] = {
        "job": JobKey("default", JobId(f"job-{number}")),
        "note": JobKey("default", JobId(f"job-{number}")),
        "node": NODES[number],
        "team": TeamKey("default"),
    }
    return keys.get(event.family)


@some
@given(st.lists(st.tuples(events(), st.integers(0, 3)), max_size=20))
def test_fold_and_decide_never_raise(drawn: list[tuple[Event, int]]):
    world = World()
    for event, number in drawn:
        key = _key_for(event, number)
        if key is not None:
            world.say(key, event)
            world.decide()
    assert world.state.jobs.keys() >= world.state.desk.waiting.keys()
