"""Nodes are drained on request, and a log that is nearly full takes no new jobs."""

import pytest
from tests.unit.submission.world import ADA, FakeKeys, World, a_desk

from trainmaster.core.errors import NotFoundError
from trainmaster.core.events import CancelRequested, Submitted
from trainmaster.core.facts import Capacity, Drained, DrainRequested, DrainWithdrawn
from trainmaster.core.facts import NodeRegistered as Registered
from trainmaster.core.ids import NodeKey
from trainmaster.jobfile.reading import Source
from trainmaster.submission.desk import LogFullError, Once
from trainmaster.submission.policy import judge
from trainmaster.submission.requests import (
    ROOM_FACT,
    Already,
    Cancel,
    Drain,
    Full,
    Missing,
    Room,
    Stored,
    Submit,
    Undrain,
)
from trainmaster.testkit.builders import KEY, a_history, a_spec

pytestmark = pytest.mark.unit
NODE = NodeKey("local", "n1")
DRAIN = Drain(key=NODE, by="ada", reason="new disks")
UNDRAIN = Undrain(key=NODE, by="ada")
FULL = Room(used_bytes=80, most_bytes=100)
SOURCE = Source(text="name: a\ncommand: [train]\n", name="job.yaml", directory="/work")


def founded(*facts: Registered | DrainRequested | Drained | DrainWithdrawn) -> World:
    world = World()
    world.turn()
    for fact in facts:
        world.store(NODE, fact)
    return world


# --------------------------------------------------------------------------- nodes


def test_draining_is_requested_once():
    world = founded(Registered())
    drain = judge(world.state, DRAIN)
    assert drain == DrainRequested(by="ada", reason="new disks")
    world.store(NODE, DrainRequested())
    assert judge(world.state, DRAIN) == Already(message="it is draining")
    world.store(NODE, Drained())
    assert judge(world.state, DRAIN) == Already(message="it is drained")


def test_a_drain_is_withdrawn_once():
    world = founded(Registered(), DrainRequested(), Drained())
    assert judge(world.state, UNDRAIN) == DrainWithdrawn(by="ada")
    world.store(NODE, DrainWithdrawn())
    assert isinstance(judge(world.state, UNDRAIN), Already)
    assert isinstance(judge(world.state, DRAIN), DrainRequested)


def test_a_node_that_never_registered_cannot_be_drained():
    assert judge(founded().state, DRAIN) == Missing()
    assert judge(founded(DrainRequested()).state, UNDRAIN) == Missing()


async def test_the_desk_answers_with_what_was_stored_or_who_is_missing():
    async with founded(Registered()).running() as world:
        desk = a_desk(world, FakeKeys())
        stored = await desk.change_node(DRAIN)
        assert isinstance(stored, Stored)
        assert isinstance(world.entries[-1].event, DrainRequested)
        assert isinstance(await desk.change_node(DRAIN), Already)
        with pytest.raises(NotFoundError, match="n9"):
            await desk.change_node(Drain(key=NodeKey("local", "n9")))


# ---------------------------------------------------------------------------- room


@pytest.mark.parametrize(
    ("room", "full"),
    [
        (Room(), False),
        (Room(used_bytes=10**12), False),
        (Room(used_bytes=79, most_bytes=100), False),
        (Room(used_bytes=80, most_bytes=100), True),
        (Room(used_bytes=100, most_bytes=100), True),
    ],
)
def test_the_log_is_full_at_four_fifths_of_its_bound(*, room: Room, full: bool):
    assert room.full is full


def test_a_full_log_takes_no_new_job_but_every_request_about_one():
    world = founded(Registered(capacity=Capacity(accelerators=8, cpus=8)))
    submit = Submit(key=KEY, by="ada", spec=a_spec(nodes=1))
    assert judge(world.state, submit, FULL) == Full(room=FULL)
    for event in a_history("submitted placed"):
        world.store(KEY, event)
    assert isinstance(judge(world.state, Cancel(key=KEY), FULL), CancelRequested)
    assert isinstance(judge(world.state, DRAIN, FULL), DrainRequested)


async def test_a_refused_submission_says_why_and_gives_its_key_back():
    async with founded().running() as world:
        keys = FakeKeys()
        world.facts.put(ROOM_FACT, FULL)
        desk = a_desk(world, keys)
        once = Once(key="k", digest="d")
        with pytest.raises(LogFullError, match="80 of 100 bytes; beyond 80% no new"):
            await desk.submit(SOURCE, by=ADA, once=once)
        assert keys.rows == {}
        world.facts.put(ROOM_FACT, Room(used_bytes=1, most_bytes=100))
        accepted = await desk.submit(SOURCE, by=ADA, once=once)
        assert accepted.new
        assert isinstance(world.entries[-1].event, Submitted)
