"""A server that dies under a running stack comes back where its clients look for it."""

import asyncio
import os
import signal
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

import pytest
import structlog

from trainmaster.runtime.embedded import (
    EmbeddedNats,
    NatsUser,
    ServerPlaceError,
    Started,
    Watch,
)
from trainmaster.runtime.embedded.ports import is_free, kept_port, settle_port
from trainmaster.runtime.stack import Stack
from trainmaster.testkit.cluster import until

pytestmark = pytest.mark.integration

ADMIN = NatsUser(name="admin", password="a", publish=(">",), subscribe=(">",))


@asynccontextmanager
async def watched(watch: Watch) -> AsyncGenerator[None]:
    task = asyncio.create_task(watch.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


async def test_both_servers_come_back_on_their_ports_and_say_so_in_a_line(
    servers: Stack,
):
    for watch, server in zip(
        servers.watches(), (servers.nats, servers.postgres), strict=True
    ):
        before, port = server.pid, server.port
        assert before is not None
        with structlog.testing.capture_logs() as lines:
            async with watched(watch):
                os.kill(before, signal.SIGKILL)
                await until(
                    "it is back",
                    lambda server=server, before=before: (
                        server.pid not in {None, before}
                    ),
                )
                await until("that is told", lambda watch=watch: watch.ready)
        assert server.port == port
        [line] = [each for each in lines if each["service"] == "stack"]
        assert line["event"] == "server_restarted"
        assert f"{watch.name} died and runs again" in line["told"]
        assert "\n" not in line["told"]
    await asyncio.gather(servers.nats.start(), servers.postgres.start())


async def test_a_port_that_a_stranger_took_is_waited_for(tmp_path: Path):
    """Moving would leave every client behind."""
    server = EmbeddedNats(data=tmp_path, users=(ADMIN,))
    await server.start()
    port = server.port
    assert port is not None

    async def restart() -> Started:
        return await server.start(move=False)

    watch = Watch(name="nats-server", pid=lambda: server.pid, restart=restart)
    await server.kill()
    try:
        await until("the port is free", lambda: is_free(port))
        with socket.create_server(("127.0.0.1", port)):
            async with watched(watch):
                await until(
                    "it is told", lambda: "does not start again" in watch.trouble
                )
                assert f"port {port} was taken by another program" in watch.trouble
                assert not watch.ready
        async with watched(watch):
            await until("it is back", lambda: server.pid is not None)
            assert server.port == port
    finally:
        await server.kill()


def test_a_port_is_kept_or_refused_when_it_may_not_move(tmp_path: Path):
    file = tmp_path / "port"
    port = settle_port(file).number
    assert settle_port(file, move=False).number == port
    with (
        socket.create_server(("127.0.0.1", port)),
        pytest.raises(ServerPlaceError, match=f"port {port} was taken"),
    ):
        settle_port(file, move=False)
    assert kept_port(file) == port


async def test_a_server_that_dies_again_and_again_is_started_later_and_later():
    starts: list[float] = []
    loop = asyncio.get_running_loop()

    async def restart() -> Started:
        starts.append(loop.time())
        return Started(pid=1, port=1)

    watch = Watch(name="nats-server", pid=lambda: None, restart=restart)
    async with watched(watch):
        await until("it was started a few times", lambda: len(starts) >= 4)
    first, second, third = (b - a for a, b in pairwise(starts[:4]))
    assert first < second < third
