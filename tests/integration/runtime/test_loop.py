"""The loop on real servers: one is active, a crash is repaired, a lost log is seen."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from typing import Any

import pytest

from trainmaster.core.decision import Write
from trainmaster.core.envelope import Entry
from trainmaster.core.events import CancelRequested
from trainmaster.core.ids import JobId, JobKey
from trainmaster.core.record import JobState
from trainmaster.reaper.app import build
from trainmaster.runtime.heads import Heads
from trainmaster.runtime.service import Env, Running, Service, open_env
from trainmaster.runtime.stack import Stack
from trainmaster.testkit.builders import a_submitted
from trainmaster.testkit.cluster import until
from trainmaster.testkit.rules import check_history

pytestmark = pytest.mark.integration

Start = Callable[[], Any]


def without_effects(env: Env) -> Service:
    """Build a reaper that archives nothing, so that jobs stay to be looked at."""
    return replace(build(env), effects=(), tasks=())


class Replica:
    """One replica of the reaper inside this process."""

    def __init__(self, env: Env) -> None:
        self.env = env
        self.running = Running(env, without_effects(env))
        self.task = asyncio.create_task(self.running.run())

    def count(self, state: JobState) -> int:
        return 0 if self.env.loop is None else self.env.loop.state.jobs.count(state)

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])
        await self.env.bus.close()


@pytest.fixture
async def start(stack: Stack) -> AsyncGenerator[Start]:
    """Start replicas of the reaper; all are stopped in the end."""
    replicas: list[Replica] = []

    async def _start() -> Replica:
        env = await open_env("reaper", stack.settings("reaper", port=0))
        replicas.append(Replica(env))
        return replicas[-1]

    yield _start
    for replica in replicas:
        await replica.stop()


@pytest.fixture
async def submission(stack: Stack) -> AsyncGenerator[Env]:
    env = await open_env("submission", stack.settings("submission", port=0))
    yield env
    await env.bus.close()


async def cancelled_jobs(submission: Env, first: int, count: int) -> None:
    """Submit jobs and ask for their cancellation: the reaper has one word for each."""
    keys = [JobKey("default", JobId(f"J{i}")) for i in range(first, first + count)]
    jobs = [(Write(key=key, event=a_submitted()),) for key in keys]
    assert (await submission.log.append(jobs, Heads())).whole
    heads = Heads()
    for entry in await submission.log.entries("JOBS", "tm.job.>"):
        heads.observe(entry)
    asked = [(Write(key=key, event=CancelRequested(by="me")),) for key in keys]
    assert (await submission.log.append(asked, heads)).whole


async def words(env: Env) -> list[str]:
    found = await env.log.entries("JOBS", "tm.job.>")
    assert not check_history([e for e in found if isinstance(e, Entry)])
    return [e.event.kind for e in found if isinstance(e, Entry)]


async def test_every_job_is_judged_once(start: Start, submission: Env):
    await cancelled_jobs(submission, 0, 300)
    replica = await start()
    await until("all judged", lambda: replica.count(JobState.CANCELLED) == 300)
    assert (await words(submission)).count("cancelled") == 300


async def test_a_standby_takes_over_where_the_first_one_was(
    start: Start, submission: Env
):
    first = await start()
    await cancelled_jobs(submission, 0, 50)
    await until("judged", lambda: first.count(JobState.CANCELLED) == 50)
    second = await start()
    await first.stop()
    await cancelled_jobs(submission, 50, 50)
    await until("judged", lambda: second.count(JobState.CANCELLED) == 100)
    assert (await words(submission)).count("cancelled") == 100


async def test_two_replicas_are_never_active_at_once(start: Start):
    first, second = await start(), await start()
    await until("one is active", lambda: first.running.ready or second.running.ready)
    gauges = [
        r.env.metrics.registry.get_sample_value("tm_leading") for r in (first, second)
    ]
    assert sorted(gauges) == [0, 1]


async def test_a_deleted_consumer_is_opened_again_without_loss(
    start: Start, submission: Env, stack: Stack
):
    replica = await start()
    await until("ready", lambda: replica.running.ready)
    bus = await stack.provisioner()
    await bus.ask_api("CONSUMER.DELETE.JOBS.reaper", {})
    await bus.close()
    await cancelled_jobs(submission, 0, 20)
    await until("judged", lambda: replica.count(JobState.CANCELLED) == 20)
    assert (await words(submission)).count("cancelled") == 20


async def test_dropped_tables_are_rebuilt_by_replay(
    start: Start, submission: Env, stack: Stack
):
    first = await start()
    await cancelled_jobs(submission, 0, 20)
    await until("judged", lambda: first.count(JobState.CANCELLED) == 20)
    before = dict(first.env.loop.state.jobs)
    await first.stop()
    await drop_schema(stack, "reaper_v1")
    second = await start()
    await until("rebuilt", lambda: second.running.ready)
    assert second.env.loop.state.jobs == before
    assert (await words(submission)).count("cancelled") == 20


async def test_a_lost_log_is_noticed_and_nothing_is_appended(
    start: Start, submission: Env, stack: Stack
):
    first = await start()
    await cancelled_jobs(submission, 0, 20)
    await until("judged", lambda: first.count(JobState.CANCELLED) == 20)
    await first.stop()
    await lose_the_stream(stack, "JOBS")
    second = await start()
    await until("noticed", lambda: "lost its tail" in second.running.trouble)
    assert not second.running.ready
    await cancelled_jobs(submission, 100, 3)
    assert "cancelled" not in await words(submission)


async def lose_the_stream(stack: Stack, name: str) -> None:
    """Make the stream anew, as after a restore from nothing."""
    from trainmaster.runtime.provision import (
        declare_streams,
        deploy_folder,
        read_streams,
    )

    bus = await stack.provisioner()
    await bus.ask_api(f"STREAM.DELETE.{name}", {})
    await declare_streams(bus, read_streams(deploy_folder()))
    await bus.close()


async def drop_schema(stack: Stack, name: str) -> None:
    import asyncpg

    connection = await asyncpg.connect(stack.postgres.superuser_dsn("trainmaster"))
    await connection.execute(f"drop schema {name} cascade")
    await connection.close()
