"""What happens when a server does not do as it is told; a shell plays the server."""

import os
import shlex
import signal
from pathlib import Path

import pytest

from trainmaster.runtime.embedded import ServerFailedError, Stopped
from trainmaster.runtime.embedded.server import Launch, Rung, ServerProcess, within

pytestmark = pytest.mark.integration

DEADLINE_SECONDS = 10
LADDER = (Rung(signal_number=signal.SIGTERM, seconds=0.2),)


@pytest.fixture
def server(tmp_path: Path) -> ServerProcess:
    return ServerProcess(
        name="the server", program="sh", home=tmp_path, workdir=tmp_path
    )


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    """Who reads it waits for ever."""
    path = tmp_path / "never"
    os.mkfifo(path)
    return path


async def start(server: ServerProcess, script: str, *, seconds: float) -> None:
    """Start a script that is ready once it has written `up`."""
    launch = Launch(command=("/bin/sh", "-c", script), directory=server.log.path.parent)

    async def is_up() -> bool:
        return "up" in server.log.said(since=0)

    with await server.claim(LADDER) as lock:
        server.spawn_server(launch, lock)
        await server.ready(answers=is_up, seconds=seconds)


async def test_a_server_that_ignores_the_order_to_stop_is_killed_and_said_so(
    server: ServerProcess, fifo: Path
):
    script = f'trap "" TERM; echo up; read _ <{shlex.quote(str(fifo))}'
    await start(server, script, seconds=DEADLINE_SECONDS)
    assert server.find() is not None
    assert await server.stop(LADDER) is Stopped.FORCED
    assert server.find() is None


async def test_a_server_that_ends_too_early_is_quoted(server: ServerProcess):
    with pytest.raises(ServerFailedError) as failed:
        await start(server, "echo the reason; exit 3", seconds=DEADLINE_SECONDS)
    assert "ended with exit code 3 instead of starting" in str(failed.value)
    assert failed.value.lines == ("the reason",)


async def test_only_the_last_start_is_quoted(server: ServerProcess):
    for reason in ("old", "new"):
        with pytest.raises(ServerFailedError) as failed:
            await start(server, f"echo {reason}; exit 3", seconds=DEADLINE_SECONDS)
        assert failed.value.lines == (reason,)


async def test_a_server_that_never_answers_is_killed_and_quoted(
    server: ServerProcess, fifo: Path
):
    script = f"echo hello; read _ <{shlex.quote(str(fifo))}"
    with pytest.raises(ServerFailedError, match=r"did not answer.*\n.*hello"):
        await start(server, script, seconds=0.3)
    assert server.find() is None


async def test_a_program_that_cannot_run_is_named(server: ServerProcess):
    launch = Launch(command=("/no/such/program",), directory=server.log.path.parent)
    with (
        await server.claim(LADDER) as lock,
        pytest.raises(ServerFailedError, match="/no/such/program"),
    ):
        server.spawn_server(launch, lock)
    assert server.find() is None


async def test_a_preparation_that_fails_is_quoted(server: ServerProcess):
    launch = Launch(
        command=("/bin/sh", "-c", "echo no space; exit 1"),
        directory=server.log.path.parent,
    )
    with (
        await server.claim(LADDER) as lock,
        pytest.raises(ServerFailedError, match=r"sh: exit code 1(.|\n)*no space"),
    ):
        await server.run(launch, lock, seconds=DEADLINE_SECONDS)


async def test_a_preparation_that_hangs_is_ended(server: ServerProcess, fifo: Path):
    launch = Launch(command=("/bin/cat", str(fifo)), directory=fifo.parent)
    with (
        await server.claim(LADDER) as lock,
        pytest.raises(ServerFailedError, match="was not prepared within"),
    ):
        await server.run(launch, lock, seconds=0.3)

    async def is_free() -> bool:
        with await server.claim(LADDER):
            return True

    assert await within(DEADLINE_SECONDS, is_free)
