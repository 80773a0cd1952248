"""The read API against a real bus and a real database, over real HTTP."""

from typing import Any

import pytest
from tests.unit.console.caller import console

from trainmaster.core import subjects
from trainmaster.core.events import Transition
from trainmaster.core.facts import (
    Capacity,
    MemberClosed,
    MemberPrepared,
    NodeRegistered,
)
from trainmaster.core.ids import JobId, JobKey, MemberKey, NodeKey
from trainmaster.core.messages import OutputChunk, Progress, WaitReason, WaitReasons
from trainmaster.core.model import Message
from trainmaster.core.notes import CheckpointVerified
from trainmaster.core.values import Proof
from trainmaster.testkit.builders import a_history, a_spec
from trainmaster.testkit.servers import Stack

pytestmark = pytest.mark.integration

JOB = JobKey("default", JobId("01JOBA"))
OTHER = JobKey("default", JobId("01JOBB"))


async def lead(world: Stack, words: str, *, key: JobKey = JOB, **spec: Any) -> None:
    await world.tell(key, list[Transition](a_history(words, spec=a_spec(**spec))))


async def put_status(world: Stack, subject: str, message: Message) -> None:
    await world.admin.request(subject, message.to_json(), seconds=5)


async def say_output(
    world: Stack, text: str, *, rank: int = 0, offset: int = 0
) -> None:
    chunk = OutputChunk(offset=offset, text=text, node="n1")
    await world.admin.request(subjects.output(JOB, 1, rank), chunk.to_json(), seconds=5)


async def test_a_job_is_listed_from_submission_to_its_end(world: Stack):
    async with console(world) as caller:
        assert await caller.get("/jobs") == {"jobs": []}
        await lead(world, "submitted placed ordered started completed reclaimed")
        await world.say(JOB, a_history("submitted cancel cancelled")[2])
        await caller.until("/jobs", lambda told: len(told["jobs"]) == 1)
        row = (await caller.get("/jobs"))["jobs"][0]
        assert (row["id"], row["name"], row["attempt"]) == ("01JOBA", "train", 1)
        assert row["nodes"] == ["n1", "n2"]


async def test_an_archived_job_and_all_its_events_can_still_be_read(world: Stack):
    async with console(world) as caller:
        life = "submitted placed ordered started completed reclaimed succeeded archived"
        await lead(world, life)
        job = await caller.until("/jobs/train", lambda told: told["archived"])
        assert (job["state"], job["cause"]) == ("succeeded", "completed")
        assert [a["attempt"] for a in job["attempts"]] == [1]
        events = await caller.get("/jobs/01JOBA/events")
    assert [e["seq"] for e in events] == list(range(1, 9))
    async with console(world) as again:
        told = await again.get("/jobs/01JOBA/events")
    assert [e["summary"] for e in told] == [e["summary"] for e in events]


async def test_events_hold_notes_and_what_the_nodes_reported(world: Stack):
    member = MemberKey("local", "n1", JOB.job, 1)
    async with console(world) as caller:
        await lead(world, "submitted placed")
        await world.say(member, MemberPrepared())
        await world.say(JOB, CheckpointVerified(attempt=1, step=100, files=4, bytes=1))
        events = await caller.until("/jobs/train/events", lambda told: len(told) == 4)
        types = {event["type"] for event in events}
        assert types == {
            "submitted",
            "attempt_placed",
            "member_prepared",
            "checkpoint_verified",
        }
        behind = await caller.get("/jobs/train/events", after=3)
        assert behind == events[3:]
        job = await caller.get("/jobs/train")
        assert job["step"] == 100


async def test_followed_events_come_as_they_happen_and_end_with_the_archive(
    world: Stack,
):
    life = a_history("submitted cancel cancelled archived")
    async with console(world) as caller:
        await world.say(JOB, life[0])
        await caller.until("/jobs", lambda told: told["jobs"])
        async with caller.stream("/jobs/01JOBA/events", follow="true") as told:
            seen = [(await anext(told))["type"]]
            for event in life[1:]:
                await world.say(JOB, event)
                seen.append((await anext(told))["type"])
            assert [event async for event in told] == []
    assert seen == ["submitted", "cancel_requested", "cancelled", "archived"]


async def test_a_follower_goes_on_behind_the_last_event_it_has(world: Stack):
    async with console(world) as caller:
        await lead(world, "submitted cancel cancelled archived")
        await caller.until("/jobs/train", lambda told: told["archived"])
        caller.http.headers["last-event-id"] = "2"
        async with caller.stream("/jobs/train/events", follow="true") as told:
            assert [event["seq"] async for event in told] == [3, 4]


async def test_followed_output_is_whole_and_comes_once(world: Stack):
    async with console(world) as caller:
        await lead(world, "submitted placed ordered started")
        await say_output(world, "one\n")
        await caller.until("/jobs", lambda told: told["jobs"])
        async with caller.stream("/jobs/train/logs", follow="true") as told:
            assert (await anext(told))["text"] == "one\n"
            await say_output(world, "one\n")
            await say_output(world, "e\ntwo\n", offset=2)
            await say_output(world, "other\n", rank=1)
            assert (await anext(told))["text"] == "two\n"
            assert (await anext(told))["rank"] == 1
            await world.say(JOB, a_history("submitted cancel cancelled")[1])
            ending = "submitted placed ordered started completed reclaimed cancelled"
            await world.tell(JOB, a_history(ending)[4:])
            await say_output(world, "last\n", offset=8)
            assert [piece["text"] async for piece in told] == ["last\n"]
        answer = await caller.http.get("/jobs/train/logs")
        assert answer.text == "[0] one\n[0] two\n[1] other\n[0] last\n"
        answer = await caller.http.get("/jobs/train/logs", params={"rank": 0})
        assert answer.text == "one\ntwo\nlast\n"
        answer = await caller.http.get("/jobs/train/logs", params={"tail": 1})
        assert answer.text == "[0] last\n"


async def test_progress_and_reasons_show_stored_and_live(world: Stack):
    reasons = WaitReasons(reasons=(WaitReason(code="CAPACITY", message="no room"),))
    await lead(world, "submitted")
    await put_status(world, subjects.waiting(JOB), reasons)
    async with console(world) as caller:
        job = await caller.until("/jobs/train", lambda told: told["waiting"])
        assert job["reason"] == "no room"
        await world.tell(JOB, a_history("submitted placed ordered started")[1:])
        await put_status(
            world, subjects.progress(JOB), Progress(attempt=1, step=7, loss=0.5)
        )
        job = await caller.until("/jobs/train", lambda told: told["step"] == 7)
        assert (job["loss"], job["waiting"], job["reason"]) == (0.5, [], "")


async def test_a_node_shows_what_is_charged_and_what_blocks_it(world: Stack):
    node = NodeKey("local", "n1")
    await world.say(node, NodeRegistered(capacity=Capacity(accelerators=2, cpus=4)))
    await lead(world, "submitted placed ordered started ended")
    async with console(world) as caller:
        told = await caller.until("/nodes", lambda told: len(told["nodes"]) == 2)
        row = told["nodes"][0]
        assert (row["node"], row["state"], row["cpus"]) == ("n1", "ready", 4)
        assert (row["accelerators"], row["accelerators_used"]) == (2, 1)
        assert row["blocked_by"] == ["attempt 1 of job 01JOBA (train) awaits proof"]
        job = await caller.get("/jobs/train")
        assert job["unreclaimed"][0]["nodes"] == ["n1", "n2"]
        closed = MemberClosed(proof=Proof(node="n1", how="swept"))
        await world.say(MemberKey("local", "n1", JOB.job, 1), closed)
        await world.tell(
            JOB, a_history("submitted placed ordered started ended reclaimed:n1,n2")[5:]
        )
        await caller.until("/nodes", lambda told: not told["nodes"][0]["blocked_by"])


async def test_the_stream_of_everything_tells_of_jobs_and_nodes(world: Stack):
    async with console(world) as caller, caller.stream("/events/stream") as told:
        await world.say(NodeKey("local", "n1"), NodeRegistered(address="::1"))
        assert (await anext(told))["about"] == {"pool": "local", "node": "n1"}
        await lead(world, "submitted")
        event = await anext(told)
        assert event["about"] == {"team": "default", "job": "01JOBA"}


async def test_nobody_reads_without_the_token(world: Stack):
    async with console(world, token="wrong") as caller:
        for path in ("/jobs", "/jobs/x", "/jobs/x/events", "/jobs/x/logs", "/nodes"):
            assert (await caller.http.get(path)).status_code == 401
        assert (await caller.http.get("/events/stream")).status_code == 401


async def test_an_unknown_or_ambiguous_name_is_told_with_candidates(world: Stack):
    async with console(world) as caller:
        await lead(world, "submitted")
        await lead(world, "submitted", key=OTHER, name="eval")
        await caller.until("/jobs", lambda told: len(told["jobs"]) == 2)
        missing = await caller.http.get("/jobs/trian")
        assert missing.status_code == 404
        assert missing.headers["content-type"] == "application/problem+json"
        assert missing.json()["candidates"] == ["train"]
        several = await caller.http.get("/jobs/01JOB/events")
        assert several.status_code == 409
        assert several.json()["candidates"] == ["01JOBA", "01JOBB"]
        assert (await caller.get("/jobs/eval"))["id"] == "01JOBB"


async def test_secret_variables_are_shown_without_their_values(world: Stack):
    async with console(world) as caller:
        await lead(world, "submitted", env={"HF_TOKEN": "hush", "SEED": "1"})
        job = await caller.until("/jobs/train", bool)
        assert job["spec"]["env"] == {"HF_TOKEN": "[redacted]", "SEED": "1"}
        answer = await caller.http.get("/jobs/train/events")
        assert "hush" not in answer.text
