import asyncio, time, re
import tests.integration.monitor.test_telemetry as t
from trainmaster.core import subjects
from trainmaster.core.messages import *
from trainmaster.runtime.clock import pause
from prometheus_client import generate_latest

async def test_tmpflood(stack):
    await t.say_life(stack, "submitted placed ordered started")
    async with t.monitor(stack) as running, t.user(t.agent(stack)) as bus:
        tele = running.service.tasks[0].__self__
        t0=time.monotonic()
        for number in range(2_000):
            await bus.client.publish(subjects.output(t.KEY, 1, number), b"\xff{" * 50)
            await bus.client.publish(subjects.metric(t.KEY, 1, number), b"[1]")
        sample = MetricSample(step=9, values={"loss": 2.5})
        await bus.client.publish(subjects.metric(t.KEY, 1, 0), sample.to_json())
        for i in range(10):
            await pause(1)
            text = generate_latest(running.env.metrics.registry).decode()
            print(round(time.monotonic()-t0,1), re.findall(r'tm_telemetry_\w+_total\{kind="\w+"\} \d+', text), dict(tele._parts.board.newest), running.ready, running.trouble, tele.leading, len(tele.inbox._waiting), await t.progress_of(running), tele._parts.effect._recalled, tele._parts.effect.due)
