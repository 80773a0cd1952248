"""One id of one source means one thing, whoever is killed, however often it comes."""

import asyncio
import uuid
from pathlib import Path

import pytest
from tests.integration.submission.publisher import Publisher, publisher

from trainmaster.core.envelope import Entry
from trainmaster.core.events import CancelRequested, Submitted
from trainmaster.core.ids import JobKey
from trainmaster.core.ingress import Outcome
from trainmaster.testkit.cluster import Cluster, until

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="session")]

NAME = "submission"
JOB = "name: lm\ncommand: python train.py\nwork_directory: /there\n"
POINTS = ("before_append", "after_append", "before_answer", "before_ack")


async def restarted(door: Cluster, *, failpoints: str = "") -> None:
    door.kill(NAME)
    await started(door, failpoints=failpoints)


async def started(door: Cluster, *, failpoints: str = "") -> None:
    door.start_service(NAME, failpoints=failpoints)
    await until("it is ready", lambda: door.is_ready(NAME))


async def submitted(door: Cluster, id_: str) -> list[str]:
    """Name the jobs on the log that one id asked for."""
    found: list[str] = []
    for entry in await (await door.log()).entries("JOBS", "tm.job.>"):
        match entry:
            case Entry(key=JobKey(job=job), event=Submitted(key=key)):
                found += [job] if key.endswith(f" {id_}") else []
            case _:
                pass
    return found


async def is_worked_off(door: Cluster) -> bool:
    """Tell whether nothing is left on the stream."""
    bus = (await door.log()).bus
    info = await bus.ask_api("STREAM.INFO.INGRESS", {})
    return bool(info["state"]["messages"] == 0)


async def test_the_same_id_again_is_answered_the_same_and_does_nothing(
    door: Cluster, ci: Publisher
):
    id_ = uuid.uuid4().hex
    for _ in range(2):
        await ci.say("job_requested", id_, file=JOB)
    await ci.told(id_, times=2)
    first, second = ci.all_told(id_)
    assert first == second
    assert await submitted(door, id_) == [first.job]


async def test_the_same_id_many_times_at_once_and_after_a_kill_is_one_job(
    door: Cluster, ci: Publisher
):
    id_ = uuid.uuid4().hex
    await asyncio.gather(*(ci.say("job_requested", id_, file=JOB) for _ in range(20)))
    await ci.told(id_, times=20)
    await restarted(door)
    await ci.say("job_requested", id_, file=JOB)
    await ci.told(id_, times=21)
    assert {answer.job for answer in ci.all_told(id_)} == set(
        await submitted(door, id_)
    )
    assert len(await submitted(door, id_)) == 1


async def test_the_same_id_for_something_else_is_refused_and_changes_nothing(
    door: Cluster, ci: Publisher
):
    id_ = uuid.uuid4().hex
    await ci.say("job_requested", id_, file=JOB)
    first = await ci.told(id_)
    await ci.say("job_requested", id_, file=JOB, name="other")
    await ci.say("cancel_requested", id_, job=first.job)
    await ci.told(id_, times=3)
    outcomes = [answer.outcome for answer in ci.all_told(id_)]
    assert outcomes == [Outcome.ACCEPTED, Outcome.REFUSED, Outcome.REFUSED]
    assert [f.field for f in ci.all_told(id_)[-1].faults] == ["ce-id"]
    assert await submitted(door, id_) == [first.job]


async def test_an_id_belongs_to_its_source(
    door: Cluster, ci: Publisher, with_sources: Path
):
    id_ = uuid.uuid4().hex
    await ci.say("job_requested", id_, file=JOB)
    async with publisher(with_sources / "sources" / "dcgm.json") as other:
        await other.say("job_requested", id_, file=JOB)
        mine, theirs = await ci.told(id_), await other.told(id_)
    assert mine.job != theirs.job
    assert sorted(await submitted(door, id_)) == sorted([mine.job, theirs.job])


@pytest.mark.parametrize("point", POINTS)
async def test_a_kill_between_log_and_acknowledgement_doubles_no_job(
    door: Cluster, ci: Publisher, point: str
):
    await restarted(door, failpoints=f"{NAME}.{point}=kill")
    id_ = uuid.uuid4().hex
    await ci.say("job_requested", id_, file=JOB)
    await door.died(NAME)
    await started(door)
    answer = await ci.told(id_)
    assert answer.outcome is Outcome.ACCEPTED
    await until("nothing is left", lambda: is_worked_off(door))
    assert await submitted(door, id_) == [answer.job]
    assert {told.job for told in ci.all_told(id_)} == {answer.job}


@pytest.mark.parametrize("point", ["after_append", "before_answer"])
async def test_a_kill_doubles_no_cancel(door: Cluster, ci: Publisher, point: str):
    job = uuid.uuid4().hex
    await ci.say("job_requested", job, file=JOB)
    asked = await ci.told(job)
    await restarted(door, failpoints=f"{NAME}.{point}=kill")
    id_ = uuid.uuid4().hex
    await ci.say("cancel_requested", id_, job=asked.job)
    await door.died(NAME)
    await started(door)
    assert (await ci.told(id_)).outcome is Outcome.ACCEPTED
    found = await (await door.log()).entries("JOBS", f"tm.job.default.{asked.job}.>")
    events = [e.event for e in found if isinstance(e, Entry)]
    assert len([e for e in events if isinstance(e, CancelRequested)]) == 1


async def test_what_is_said_while_submission_is_away_waits_for_it(
    door: Cluster, ci: Publisher
):
    door.kill(NAME)
    id_ = uuid.uuid4().hex
    await ci.say("job_requested", id_, file=JOB)
    await started(door)
    assert (await ci.told(id_)).outcome is Outcome.ACCEPTED


async def test_an_answer_that_nobody_heard_can_be_read_later(
    ci: Publisher, door: Cluster, with_sources: Path
):
    assert door.processes[NAME].poll() is None
    id_ = uuid.uuid4().hex
    await ci.say("job_requested", id_, file=JOB)
    answer = await ci.told(id_)
    async with publisher(with_sources / "sources" / "ci.json") as later:
        assert await later.ask_again(id_) == answer


async def test_the_door_is_open_again_after_the_bus_was_gone(
    door: Cluster, with_sources: Path
):
    await door.stack.nats.kill()
    await until("it has noticed", lambda: not door.is_ready(NAME))
    await door.stack.nats.start()
    await until("it is back", lambda: door.is_ready(NAME))
    id_ = uuid.uuid4().hex
    async with publisher(with_sources / "sources" / "ci.json") as connected:
        await connected.say("job_requested", id_, file=JOB)
        assert (await connected.told(id_)).outcome is Outcome.ACCEPTED
