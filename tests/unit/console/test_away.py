"""The console while something is not there: a team, the end of a stream, the bus."""

from typing import Any

import pytest
from tests.unit.console.caller import Caller, console

from trainmaster.core import subjects
from trainmaster.core.events import Transition
from trainmaster.core.facts import TeamCreated
from trainmaster.core.ids import JobId, JobKey, TeamKey
from trainmaster.core.messages import OutputChunk
from trainmaster.testkit.builders import a_history, a_spec
from trainmaster.testkit.servers import Stack, eventually

pytestmark = pytest.mark.integration

JOB = JobKey("default", JobId("01JOBA"))


async def lead(world: Stack, words: str, *, key: JobKey = JOB, **spec: Any) -> None:
    await world.tell(key, list[Transition](a_history(words, spec=a_spec(**spec))))


async def say_output(
    world: Stack, text: str, *, rank: int = 0, offset: int = 0
) -> None:
    chunk = OutputChunk(offset=offset, text=text, node="n1")
    await world.admin.request(subjects.output(JOB, 1, rank), chunk.to_json(), seconds=5)


def caught_up(caller: Caller) -> bool:
    loop = caller.running.env.loop
    return loop is not None and loop.caught_up.is_set()


async def test_a_team_that_does_not_exist_is_not_an_empty_list(world: Stack):
    await world.say(TeamKey("vision"), TeamCreated())
    async with console(world) as caller:
        assert await caller.until("/jobs", lambda _: True, team="vision") == {
            "jobs": []
        }
        answer = await caller.http.get("/jobs", params={"team": "visoin"})
        assert answer.status_code == 404
        assert answer.json()["detail"] == (
            "there is no team 'visoin'; did you mean vision?"
        )


async def test_a_stream_says_that_it_is_over_only_when_it_is(world: Stack):
    async with console(world) as caller:
        await lead(world, "submitted cancel cancelled archived")
        await caller.until("/jobs/train", lambda told: told["archived"])
        for path in ("/jobs/train/events", "/jobs/train/logs"):
            answer = await caller.http.get(path, params={"follow": "true"})
            assert answer.text.rstrip().endswith("event: end\r\ndata: {}"), path


async def test_without_a_bus_the_console_says_what_is_missing(world: Stack):
    async with console(world) as caller:
        await lead(world, "submitted")
        await caller.until("/jobs", lambda told: told["jobs"])
        await world.nats.kill()
        root = str(caller.http.base_url).removesuffix("/api/v1/")
        told = (await caller.http.get(f"{root}/readyz")).json()
        assert f"NATS at {world.nats.url} does not answer" in told["console"]
        await eventually(lambda: not caught_up(caller))
        answer = await caller.http.get("/jobs")
        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "1"
        assert f"NATS at {world.nats.url} does not answer" in answer.json()["detail"]
        await world.nats.start()
        await eventually(lambda: caller.running.ready)
        assert len((await caller.get("/jobs"))["jobs"]) == 1


async def test_followers_miss_nothing_while_the_bus_is_away(world: Stack):
    async with console(world) as caller:
        await lead(world, "submitted placed ordered started")
        await say_output(world, "before\n")
        await caller.until("/jobs/train/events", lambda told: len(told) == 4)
        async with (
            caller.stream("/jobs/train/logs", follow="true") as output,
            caller.stream("/jobs/train/events", follow="true", after=4) as events,
        ):
            assert (await anext(output))["text"] == "before\n"
            await world.nats.kill()
            assert (await caller.get("/jobs/train"))["state"] == "running"
            await world.nats.start()
            await eventually(lambda: world.admin.connected)
            await say_output(world, "after\n", offset=7)
            life = a_history("submitted placed ordered started completed")
            await world.say(JOB, life[-1])
            assert (await anext(output))["text"] == "after\n"
            assert (await anext(events))["type"] == "attempt_ended"
        await eventually(lambda: caller.running.ready)
