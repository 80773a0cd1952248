"""One request on its way, repeated, raced and cut off."""

import asyncio

import pytest
from tests.unit.submission.world import ADA, USER, FakeKeys, World, a_desk

from trainmaster.core.errors import (
    AlreadyExistsError,
    NotFoundError,
    SpecRejectedError,
    UnreachableError,
)
from trainmaster.core.events import Archived, Submitted
from trainmaster.core.facts import PoolCreated
from trainmaster.core.ids import JobId, JobKey, PoolKey
from trainmaster.core.record import JobState
from trainmaster.jobfile.reading import Source
from trainmaster.submission.desk import (
    KeyForgottenError,
    NotPossibleError,
    NotReadyError,
    Once,
)
from trainmaster.submission.ports import Claim
from trainmaster.submission.requests import Already, Cancel, Hold, Stored
from trainmaster.submission.settings import KEY_KNOWN_HOURS
from trainmaster.testkit.builders import LIVES, a_history, a_reclaimed

pytestmark = pytest.mark.unit

SOURCE = Source(text="name: lm\ncommand: x\n", name="train.yaml", directory="/there")
ONCE = Once(key="k1", digest="d1")


async def submit(world: World, keys: FakeKeys, once: Once | None = ONCE) -> JobKey:
    return (await a_desk(world, keys).submit(SOURCE, by=ADA, once=once)).key


async def test_a_job_is_submitted_as_the_servers_user():
    world = World()
    async with world.running():
        accepted = await a_desk(world, FakeKeys()).submit(SOURCE, by=ADA, once=None)
    job = world.state.jobs[accepted.key]
    assert (job.spec.user, job.by, job.spec.name) == (USER, "ada", "lm")
    assert accepted.new
    assert world.entries[accepted.seq - 1].key == accepted.key


async def test_without_a_key_every_request_is_a_job():
    world, keys = World(), FakeKeys()
    async with world.running():
        first = await submit(world, keys, None)
        second = await submit(world, keys, None)
    assert first != second


async def test_the_same_key_finds_the_same_job():
    world, keys = World(), FakeKeys()
    async with world.running():
        first = await a_desk(world, keys).submit(SOURCE, by=ADA, once=ONCE)
        again = await a_desk(world, keys).submit(SOURCE, by=ADA, once=ONCE)
    assert (again.key, again.seq, again.new) == (first.key, first.seq, False)
    assert world.submissions() == [first.key.job]


async def test_the_same_key_at_the_same_time_finds_the_same_job():
    world, keys = World(), FakeKeys()
    async with world.running():
        found = await asyncio.gather(*(submit(world, keys) for _ in range(20)))
    assert len(set(found)) == 1
    assert world.submissions() == [found[0].job]


async def test_another_request_with_a_used_key_is_refused():
    world, keys = World(), FakeKeys()
    async with world.running():
        await submit(world, keys)
        with pytest.raises(AlreadyExistsError, match="take a new one"):
            await submit(world, keys, Once(key="k1", digest="other"))
    assert len(world.submissions()) == 1


async def test_a_crash_between_key_and_log_does_not_change_the_id():
    world, keys = World(mute=True), FakeKeys()
    async with world.running():
        cut_off = asyncio.create_task(submit(world, keys))
        while not keys.rows:
            await asyncio.wait([cut_off], timeout=0.001)
        cut_off.cancel()
        await asyncio.wait([cut_off])
    claimed = keys.rows["k1"].job
    world.mute = False
    async with world.running():
        key = await submit(world, keys)
    assert key.job == claimed
    assert world.submissions() == [claimed]


async def test_a_crash_after_the_log_is_found_by_the_log():
    world, keys = World(), FakeKeys()
    async with world.running():
        key = await submit(world, keys)
        for event in a_history(LIVES[JobState.CANCELLED])[1:]:
            world.store(key, event)
        world.store(key, Archived())
        assert key not in world.state.jobs
        assert await submit(world, keys) == key
    assert world.submissions() == [key.job]


async def test_an_old_key_whose_job_is_not_on_the_log_is_refused():
    world, keys = World(mute=True), FakeKeys()
    lost = Claim(key="k1", digest=ONCE.digest, team="default", job=JobId("lost"))
    await keys.claim(lost)
    keys.grow_old("k1", hours=KEY_KNOWN_HOURS + 1)
    with pytest.raises(KeyForgottenError, match="submit again with a new key"):
        await submit(world, keys)
    assert world.submissions() == []


async def test_a_refused_file_gives_its_key_back():
    world, keys = World(), FakeKeys()
    wrong = Source(
        text=f"{SOURCE.text}pool: gpu\n", name="train.yaml", directory="/there"
    )
    async with world.running():
        with pytest.raises(SpecRejectedError) as caught:
            await a_desk(world, keys).submit(wrong, by=ADA, once=ONCE)
        assert keys.rows == {}
        world.store(PoolKey("gpu"), PoolCreated())
        await a_desk(world, keys).submit(wrong, by=ADA, once=ONCE)
    assert "train.yaml:3:1 no pool is called `gpu`" in str(caught.value)
    assert len(world.submissions()) == 1


async def test_validating_submits_nothing_and_finds_the_same_faults():
    world, keys = World(), FakeKeys()
    wrong = Source(text=f"{SOURCE.text}team: gpu\n", directory="/there")
    async with world.running():
        found = await a_desk(world, keys).validate(SOURCE, by=ADA)
        with pytest.raises(SpecRejectedError, match="3:1 no team is called `gpu`"):
            await a_desk(world, keys).validate(wrong, by=ADA)
    assert found.spec.output_directory == "/there/tm-runs/{job}"
    assert world.submissions() == []


async def test_a_service_that_is_not_ready_says_why_but_reads_the_file_first():
    desk = a_desk(World(), FakeKeys(), trouble="it is starting")
    with pytest.raises(NotReadyError, match="it is starting; try again"):
        await desk.submit(SOURCE, by=ADA, once=None)
    with pytest.raises(SpecRejectedError):
        await desk.submit(Source(text="", directory="/"), by=ADA, once=None)


async def test_nothing_is_submitted_while_keys_cannot_be_claimed():
    world = World()
    async with world.running():
        with pytest.raises(UnreachableError):
            await submit(world, FakeKeys(away=True))
    assert world.submissions() == []


async def test_a_change_is_stored_and_its_repetition_is_not():
    world, keys = World(), FakeKeys()
    async with world.running():
        key = await submit(world, keys)
        desk = a_desk(world, keys)
        first = await desk.change(Cancel(key=key, by="ada"))
        again = await desk.change(Cancel(key=key, by="bob"))
    assert isinstance(first, Stored)
    assert again == Already(message="ada asked for it before")


async def test_two_changes_of_one_job_at_once_are_both_answered():
    world, keys = World(), FakeKeys()
    async with world.running():
        key = await submit(world, keys)
        desk = a_desk(world, keys)
        held, cancelled = await asyncio.gather(
            desk.change(Hold(key=key)), desk.change(Cancel(key=key))
        )
    assert isinstance(held, Stored)
    assert isinstance(cancelled, Stored)


async def test_a_change_that_cannot_be_says_why():
    world, keys = World(), FakeKeys()
    async with world.running():
        desk = a_desk(world, keys)
        with pytest.raises(NotFoundError, match="`tm list`"):
            await desk.change(Cancel(key=JobKey("default", JobId("none"))))
        key = JobKey("default", JobId("job-1"))
        for event in a_history(LIVES[JobState.FAILED]):
            world.store(key, event)
        with pytest.raises(NotPossibleError, match="job-1: the job is over: it failed"):
            await desk.change(Cancel(key=key))
        world.store(key, a_reclaimed(1, ("n1", "n2")))
        world.store(key, Archived(attempt=1))
        assert key not in world.state.jobs
        with pytest.raises(NotPossibleError, match="the job is over and archived"):
            await desk.change(Cancel(key=key))
    assert sum(isinstance(e.event, Submitted) for e in world.entries) == 1


async def test_a_large_file_is_read_as_well():
    env = "".join(f"  K{i}: some value\n" for i in range(1000))
    large = Source(text=f"{SOURCE.text}env:\n{env}", directory="/there")
    world = World()
    async with world.running():
        accepted = await a_desk(world, FakeKeys()).submit(large, by=ADA, once=None)
    assert len(world.state.jobs[accepted.key].spec.env) == 1000
