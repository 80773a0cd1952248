"""Reading the real log: in order, and nothing that is there is forgotten."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from trainmaster.core.decision import Write
from trainmaster.core.ids import JobId, JobKey
from trainmaster.runtime.heads import Heads
from trainmaster.runtime.reader import Place, StreamReader, Subscribed
from trainmaster.runtime.service import Env, open_env
from trainmaster.runtime.stack import Stack
from trainmaster.submission.policy import Submission
from trainmaster.testkit.builders import a_submitted

pytestmark = pytest.mark.integration
_SECONDS = 10.0


@pytest.fixture
async def submission(stack: Stack) -> AsyncGenerator[Env]:
    env = await open_env("submission", stack.settings("submission", port=0))
    yield env
    await env.bus.close()


async def test_who_takes_a_part_is_woken_for_the_rest(submission: Env):
    keys = [JobKey("default", JobId(f"J{n}")) for n in range(20)]
    groups = [(Write(key=key, event=a_submitted()),) for key in keys]
    assert (await submission.log.append(groups, Heads())).whole
    wake = asyncio.Event()
    filters = tuple(f for f in Submission.hears if f.startswith("tm.job"))
    what = Subscribed(stream="JOBS", filters=filters, name="submission")
    reader = StreamReader(submission.log, what, wake=wake)
    reader.start(Place())
    await reader.refresh()
    taken: list[str] = []
    try:
        async with asyncio.timeout(_SECONDS):
            while len(taken) < len(keys):
                await wake.wait()
                wake.clear()
                taken += [raw.subject.split(".")[3] for raw in reader.take(3)]
    finally:
        await reader.close()
    assert taken == [key.job for key in keys]
