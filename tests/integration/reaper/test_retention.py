"""Old jobs leave the log, whole in the archive, with the rights of production."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

import asyncpg
import pytest

from trainmaster.core import subjects
from trainmaster.core.decision import Write
from trainmaster.core.envelope import Entry
from trainmaster.core.errors import NotAllowedError
from trainmaster.core.events import Event, PlanMade
from trainmaster.core.facts import MemberClosed
from trainmaster.core.ids import JobId, JobKey, MemberKey, NodeKey, PlanKey
from trainmaster.core.notes import FindingRaised
from trainmaster.reaper.app import build
from trainmaster.reaper.retention import Retention
from trainmaster.reaper.settings import ReaperSettings
from trainmaster.reaper.store import Archive
from trainmaster.runtime.bus import Bus, BusAddress, connect
from trainmaster.runtime.clock import pause
from trainmaster.runtime.heads import Heads
from trainmaster.runtime.log import Log
from trainmaster.runtime.service import Env, Running, open_env
from trainmaster.runtime.stack import Stack
from trainmaster.testkit.builders import a_history

pytestmark = pytest.mark.integration

WITHIN_SECONDS: Final = 20.0
LIFE: Final = "submitted placed ordered started completed reclaimed succeeded archived"
OLD: Final = JobKey("default", JobId("old"))
LIVE: Final = JobKey("default", JobId("live"))
NOW: Final = ReaperSettings().model_copy(update={"retention_days": 0.0})
"""Whatever is archived is old."""


@asynccontextmanager
async def reaper(stack: Stack) -> AsyncGenerator[Env]:
    env = await open_env("reaper", stack.settings("reaper", port=0))
    running = Running(env, build(env))
    task = asyncio.create_task(running.run())
    try:
        async with asyncio.timeout(WITHIN_SECONDS):
            while not running.ready:
                await pause(0.02)
        yield env
    finally:
        task.cancel()
        await asyncio.wait([task])
        await env.bus.close()
        await env.database.close()


def retention(env: Env, settings: ReaperSettings = NOW) -> Retention:
    return Retention(env, Archive(env.database, epoch=1), settings)


async def write_log(stack: Stack) -> None:
    """Store one job that is over, with all there is about it, and one that lives."""
    said = [Write(key=LIVE, event=e) for e in a_history("submitted placed")]
    said += [Write(key=OLD, event=e) for e in a_history(LIFE)]
    said += [Write(key=PlanKey("local"), event=PlanMade(placements=n)) for n in (1, 2)]
    said.append(Write(key=OLD, event=FindingRaised(attempt=1, rule="nan")))
    said.append(Write(key=MemberKey("local", "n1", OLD.job, 1), event=MemberClosed()))
    async with AsyncExitStack() as connected:
        buses: dict[str, Bus] = {}
        reader = Log(await stack.provisioner(), source="test", epoch=1)
        connected.push_async_callback(reader.bus.close)
        for write in said:
            name = write.event.publisher
            if name not in buses:
                buses[name] = await connect(address_of(stack, name), name=name)
                connected.push_async_callback(buses[name].close)
            await append(Log(buses[name], source=name, epoch=1), reader, write)


def address_of(stack: Stack, publisher: str) -> BusAddress:
    if publisher != "agent":
        return stack.settings(publisher, port=0).bus
    settings = stack.agent_settings(NodeKey("local", "n1"))
    return BusAddress(
        url=settings["nats_url"],
        user=settings["nats_user"],
        password=settings["nats_password"],
    )


async def append(log: Log, reader: Log, write: Write) -> None:
    """Append behind what is there."""
    heads = Heads()
    family = write.event.family
    scope = subjects.scope(family, write.key)
    stream = subjects.STREAM_OF_FAMILY[family]
    for entry in await reader.entries(stream, scope) if scope else ():
        heads.observe(entry)
    assert (await log.append(((write,),), heads)).whole


async def stored(log: Log, key: JobKey) -> list[str]:
    """Name all that the log holds about a job."""
    job = subjects.scope("job", key)
    note = job.replace("job", "note", 1)
    found = [*await log.entries(subjects.JOBS, job)]
    found += await log.entries(subjects.JOBS, note)
    found += await log.entries(subjects.MEMBERS, f"tm.member.*.*.{key.job}.>")
    return [entry.event.kind for entry in found if isinstance(entry, Entry)]


async def archived(stack: Stack) -> list[str]:
    connection = await asyncpg.connect(stack.postgres.superuser_dsn("trainmaster"))
    try:
        rows = await connection.fetch(
            "select subject from reaper_truth.archive where job = $1 order by seq",
            OLD.job,
        )
    finally:
        await connection.close()
    return [row["subject"].rpartition(".")[2] for row in rows]


async def test_of_an_old_job_only_the_word_that_it_is_archived_stays(stack: Stack):
    await write_log(stack)
    async with reaper(stack) as env:
        log = env.log
        await retention(env).purge()
        await retention(env).purge()  # again is safe
        assert await stored(log, OLD) == ["archived"]
        assert await stored(log, LIVE) == ["submitted", "attempt_placed"]


async def test_what_is_purged_is_in_the_archive_also_what_came_late(stack: Stack):
    await write_log(stack)
    async with reaper(stack) as env:
        await retention(env).purge()
    kinds = await archived(stack)
    assert [kinds[0], *kinds[-2:]] == ["submitted", "archived", "finding_raised"]
    assert len(kinds) == len(LIFE.split()) + 1


async def test_the_word_itself_goes_in_the_end(stack: Stack):
    await write_log(stack)
    gone = NOW.model_copy(update={"traces_days": 0.0})
    async with reaper(stack) as env:
        await retention(env, gone).purge()
        assert await stored(env.log, OLD) == []
        assert await stored(env.log, LIVE) == ["submitted", "attempt_placed"]


async def test_nothing_is_purged_before_its_time(stack: Stack):
    await write_log(stack)
    async with reaper(stack) as env:
        await retention(env, ReaperSettings()).purge()
        assert len(await stored(env.log, OLD)) == len(LIFE.split()) + 2


async def test_of_a_pools_markers_the_newest_stays(stack: Stack):
    await write_log(stack)
    async with reaper(stack) as env:
        await retention(env).purge()
        found = await env.log.entries(subjects.JOBS, "tm.plan.local")
        events: list[Event] = [e.event for e in found if isinstance(e, Entry)]
        assert events == [PlanMade(placements=2)]


@pytest.mark.parametrize("stream", [subjects.JOBS, subjects.MEMBERS])
async def test_nobody_else_may_purge_the_log(stack: Stack, stream: str):
    for name in ("launcher", "console", "scheduler"):
        bus = await connect(stack.settings(name, port=0).bus, name=name)
        try:
            with pytest.raises(NotAllowedError):
                await bus.ask_api(f"STREAM.PURGE.{stream}", {"filter": "tm.job.a.b.>"})
        finally:
            await bus.close()
