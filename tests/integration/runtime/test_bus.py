"""The connection to a bus that dies: nobody waits in vain, nothing falls over."""

import asyncio
import gc
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import uvloop

from trainmaster.core.errors import UnreachableError
from trainmaster.runtime.bus import Bus, BusAddress, connect
from trainmaster.runtime.embedded import EmbeddedNats, NatsUser
from trainmaster.testkit.cluster import until

pytestmark = pytest.mark.integration

ADMIN = NatsUser(name="admin", password="a", publish=(">",), subscribe=(">",))
LONG_SECONDS = 30.0


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[EmbeddedNats]:
    server = EmbeddedNats(data=tmp_path, users=(ADMIN,))
    await server.start()
    yield server
    await server.kill()


async def connected(server: EmbeddedNats) -> Bus:
    address = BusAddress(url=server.url, user="admin", password="a")
    return await connect(address, name="test")


async def asked(bus: Bus) -> "asyncio.Task[Any]":
    """Ask somebody who never answers, and wait until the question is out."""
    heard = asyncio.Event()

    async def hear(_message: Any) -> None:
        heard.set()

    await bus.subscribe("deaf", hear)
    question = bus.request("deaf", b"", seconds=LONG_SECONDS)
    task = asyncio.create_task(question)
    await heard.wait()
    return task


async def test_who_waits_for_an_answer_hears_at_once_that_the_server_died(
    server: EmbeddedNats,
):
    bus = await connected(server)
    task = await asked(bus)
    began = time.monotonic()
    await server.kill()
    with pytest.raises(UnreachableError, match="broke before the answer came"):
        await task
    assert time.monotonic() - began < LONG_SECONDS / 10
    await bus.close()


async def test_the_connection_is_there_again_after_the_server_is(server: EmbeddedNats):
    bus = await connected(server)
    await server.kill()
    await until("it is noticed", lambda: not bus.connected)
    await server.start(move=False)
    await until("it is back", lambda: bus.connected)
    answer = await bus.ask_api("INFO", {})
    assert "error" not in answer
    await bus.close()


def test_closing_after_the_server_died_raises_nothing(tmp_path: Path):
    """The loop of services is uvloop, whose transports raise when written to."""

    async def story() -> float:
        server = EmbeddedNats(data=tmp_path, users=(ADMIN,))
        await server.start()
        bus = await connected(server)
        await server.kill()
        await until("it is noticed", lambda: not bus.connected)
        await bus.client.publish("x", b"never sent")
        began = time.monotonic()
        await bus.close()
        await bus.close()
        return time.monotonic() - began

    assert uvloop.run(story()) < 3


async def test_a_question_whose_asker_left_complains_to_nobody(server: EmbeddedNats):
    """It ends with `no responders` in the very moment in which it is cancelled."""
    complaints: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, what: complaints.append(what))
    bus = await connected(server)
    for _ in range(50):
        task = asyncio.create_task(bus.request("nobody", b"", seconds=5))
        await bus.client.flush()
        task.cancel()
        await asyncio.wait({task})
    await bus.client.flush()
    gc.collect()
    assert complaints == []
    await bus.close()
