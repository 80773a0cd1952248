"""The monitor on real servers, with the rights it has in production."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final, TypeVar

import pytest
from prometheus_client import generate_latest

from trainmaster.core import subjects
from trainmaster.core.decision import Write
from trainmaster.core.envelope import Entry
from trainmaster.core.events import Event
from trainmaster.core.facts import Capacity, Drained, DrainRequested, NodeRegistered
from trainmaster.core.ids import JobId, JobKey, NodeKey
from trainmaster.core.messages import (
    MetricSample,
    NodeHeartbeat,
    OutputChunk,
    Progress,
)
from trainmaster.core.notes import FindingRaised
from trainmaster.monitor.app import build
from trainmaster.monitor.store import MetricStore
from trainmaster.runtime.bus import Bus, BusAddress, connect
from trainmaster.runtime.clock import pause
from trainmaster.runtime.heads import Heads
from trainmaster.runtime.log import Log
from trainmaster.runtime.service import Running, open_env
from trainmaster.runtime.stack import Stack
from trainmaster.testkit.builders import a_history

pytestmark = pytest.mark.integration

WITHIN_SECONDS: Final = 20.0
NODE: Final = NodeKey("local", "n1")
KEY: Final = JobKey("default", JobId("job-1"))
T = TypeVar("T")


async def eventually(ask: Callable[[], Awaitable[T | None]], what: str) -> T:
    deadline = time.monotonic() + WITHIN_SECONDS
    while True:
        found = await ask()
        if found:
            return found
        assert time.monotonic() < deadline, f"{what} did not come true in time"
        await pause(0.02)


@asynccontextmanager
async def monitor(stack: Stack) -> AsyncGenerator[Running]:
    """Run the monitor until the block is left."""
    env = await open_env("monitor", stack.settings("monitor", port=0))
    running = Running(env, build(env))
    task = asyncio.create_task(running.run())
    try:

        async def ready() -> bool:
            return running.ready

        await eventually(ready, "the monitor is ready")
        yield running
    finally:
        task.cancel()
        await asyncio.wait([task])
        await env.bus.close()
        await env.database.close()


@asynccontextmanager
async def user(address: BusAddress) -> AsyncGenerator[Bus]:
    bus = await connect(address, name=address.user)
    try:
        yield bus
    finally:
        await bus.close()


def agent(stack: Stack) -> BusAddress:
    settings = stack.agent_settings(NODE)
    return BusAddress(
        url=settings["nats_url"],
        user=settings["nats_user"],
        password=settings["nats_password"],
    )


async def say_life(stack: Stack, words: str) -> None:
    """Put a job's life on the log, each event as the service that may say it."""
    heads = Heads()
    for event in a_history(words):
        address = stack.settings(event.publisher, port=0).bus
        async with user(address) as bus:
            log = Log(bus, source=event.publisher, epoch=1)
            appended = await log.append(((Write(key=KEY, event=event),),), heads)
            assert appended.whole
            for entry in await log.entries(subjects.JOBS, subjects.scope("job", KEY)):
                heads.observe(entry)


async def events_of(log: Log, stream: str, subject: str) -> list[Event]:
    found = await log.entries(stream, subject)
    return [entry.event for entry in found if isinstance(entry, Entry)]


async def progress_of(running: Running) -> Progress | None:
    raw = await running.env.log.get(
        subjects.STATUS, {"last_by_subj": subjects.progress(KEY)}
    )
    return None if raw is None else Progress.from_json(raw.body)


async def test_a_node_that_beats_is_registered(stack: Stack):
    async with monitor(stack) as running, user(agent(stack)) as bus:
        beat = NodeHeartbeat(capacity=Capacity(accelerators=8), boot_id="boot-1")

        async def registered() -> list[Event]:
            await bus.client.publish(subjects.heartbeat(NODE), beat.to_json())
            log, scope = running.env.log, subjects.scope("node", NODE)
            return await events_of(log, subjects.NODES, scope)

        (event,) = await eventually(registered, "the node is registered")
        assert event == NodeRegistered(capacity=beat.capacity, boot_id="boot-1")


async def test_a_node_that_should_be_drained_is_so_once_it_is_empty(stack: Stack):
    """Each word by the service that may say it, with the rights it has."""
    async with monitor(stack) as running, user(agent(stack)) as bus:
        log, scope = running.env.log, subjects.scope("node", NODE)
        beat = NodeHeartbeat(capacity=Capacity(accelerators=8), boot_id="boot-1")

        async def said(kind: type[Event]) -> bool:
            await bus.client.publish(subjects.heartbeat(NODE), beat.to_json())
            found = await events_of(log, subjects.NODES, scope)
            return any(isinstance(event, kind) for event in found)

        await eventually(lambda: said(NodeRegistered), "the node is registered")
        heads = Heads()
        async with user(stack.settings("submission", port=0).bus) as operator:
            asking = Log(operator, source="submission", epoch=1)
            for entry in await asking.entries(subjects.NODES, scope):
                heads.observe(entry)
            drain = Write(key=NODE, event=DrainRequested(reason="new disks"))
            assert (await asking.append(((drain,),), heads)).whole
        await eventually(lambda: said(Drained), "the node is drained")


async def test_output_and_metrics_become_progress_and_history(stack: Stack):
    await say_life(stack, "submitted placed ordered started")
    async with monitor(stack) as running, user(agent(stack)) as bus:
        chunk = OutputChunk(offset=0, text="hello\nstep 7 loss 3.5 lr 0.1\nstep 8")
        await bus.client.publish(subjects.output(KEY, 1, 1), chunk.to_json())

        async def at(step: int) -> Progress | None:
            seen = await progress_of(running)
            return seen if seen is not None and seen.step == step else None

        seen = await eventually(lambda: at(7), "printed progress")
        assert (seen.attempt, seen.loss) == (1, 3.5)
        sample = MetricSample(step=9, values={"loss": 2.5, "lr": 0.1})
        await bus.client.publish(subjects.metric(KEY, 1, 0), sample.to_json())
        seen = await eventually(lambda: at(9), "reported progress")
        assert seen.loss == 2.5
        store = MetricStore(running.env.database)

        async def three() -> bool:
            return len(await store.history(KEY.job, most=100)) == 3

        await eventually(three, "three rows of history")
        rows = await store.history(KEY.job, most=100)
        assert [(r.rank, r.step, r.name, r.value) for r in rows] == [
            (1, 7, "loss", 3.5),
            (0, 9, "loss", 2.5),
            (0, 9, "lr", 0.1),
        ]


OVER: Final = "completed reclaimed succeeded archived"


@pytest.mark.parametrize("end", ["", OVER], ids=["running", "archived"])
async def test_progress_survives_a_restart_of_the_monitor(stack: Stack, end: str):
    await say_life(stack, f"submitted placed ordered started {end}")
    sample = MetricSample(step=9, values={"loss": 2.5})
    async with monitor(stack) as running, user(agent(stack)) as bus:
        await bus.client.publish(subjects.metric(KEY, 1, 0), sample.to_json())
        await eventually(lambda: progress_of(running), "progress")
        store = MetricStore(running.env.database)
        await eventually(store.progress, "kept progress")
    async with monitor(stack) as running:
        await pause(1.0)  # long enough to purge what would not be wanted
        seen = await progress_of(running)
        assert seen is not None
        assert seen.step == 9


async def test_a_loss_that_is_no_number_is_a_finding_within_a_second(stack: Stack):
    await say_life(stack, "submitted placed ordered started")
    async with monitor(stack) as running, user(agent(stack)) as bus:
        chunk = OutputChunk(offset=0, text="step 30 loss nan lr 0.1\n")
        began = time.monotonic()
        await bus.client.publish(subjects.output(KEY, 1, 0), chunk.to_json())

        async def finding() -> list[Event]:
            subject = subjects.scope("job", KEY).replace("job", "note", 1)
            return await events_of(running.env.log, subjects.JOBS, subject)

        (event,) = await eventually(finding, "a finding")
        assert time.monotonic() - began < 1.0
        assert isinstance(event, FindingRaised)
        assert (event.rule, event.step) == ("nan", 30)


async def test_a_flood_of_garbage_stops_nothing(stack: Stack):
    await say_life(stack, "submitted placed ordered started")
    async with monitor(stack) as running, user(agent(stack)) as bus:
        for number in range(2_000):
            await bus.client.publish(subjects.output(KEY, 1, number), b"\xff{" * 50)
            await bus.client.publish(subjects.metric(KEY, 1, number), b"[1]")
        await bus.client.publish(subjects.heartbeat(NODE), b"nonsense")
        sample = MetricSample(step=9, values={"loss": 2.5})
        await bus.client.publish(subjects.metric(KEY, 1, 0), sample.to_json())
        await eventually(lambda: progress_of(running), "progress behind the flood")
        text = generate_latest(running.env.metrics.registry).decode()
        for kind, count in (("output", 2000), ("metric", 2000), ("heartbeat", 1)):
            line = f'tm_telemetry_malformed_total{{kind="{kind}"}} {count}.0'
            assert line in text
        assert running.ready
