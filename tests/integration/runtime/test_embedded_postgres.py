"""The embedded PostgreSQL, with the real programs."""

import asyncio
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import asyncpg
import pytest

from trainmaster.runtime.embedded import (
    EmbeddedPostgres,
    ServerFailedError,
    ServerPlaceError,
    Stopped,
)
from trainmaster.runtime.embedded.account import server_account
from trainmaster.runtime.embedded.process import identify
from trainmaster.runtime.embedded.server import within

pytestmark = pytest.mark.integration

DEADLINE_SECONDS = 10


@pytest.fixture
def data() -> Iterator[Path]:
    """Not below pytest's own folder: for root, that one is closed to other users."""
    path = Path(tempfile.mkdtemp(prefix="tm-"))
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def made() -> Iterator[Path]:
    """A cluster made once: copying it takes a fifth of the time."""
    path = Path(tempfile.mkdtemp(prefix="tm-"))
    asyncio.run(start_and_stop(EmbeddedPostgres(data=path)))
    yield path / "postgres"
    shutil.rmtree(path)


async def start_and_stop(server: EmbeddedPostgres) -> None:
    await server.start()
    await server.stop()


@pytest.fixture
async def server(made: Path, data: Path) -> AsyncIterator[EmbeddedPostgres]:
    subprocess.run(("/bin/cp", "-a", str(made), str(data)), check=True)  # noqa: ASYNC221 - nothing else runs
    server = EmbeddedPostgres(data=data)
    yield server
    await server.remove()


@asynccontextmanager
async def connected(
    server: EmbeddedPostgres,
) -> AsyncGenerator["asyncpg.Connection[asyncpg.Record]"]:
    connection = await asyncpg.connect(server.superuser_dsn())
    try:
        yield connection
    finally:
        await connection.close()


async def keep_a_row(server: EmbeddedPostgres) -> None:
    async with connected(server) as connection:
        await connection.execute("create table kept as select 42 as row")


async def kept_row(server: EmbeddedPostgres) -> int:
    async with connected(server) as connection:
        return await connection.fetchval("select row from kept")


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def make_passable(*folders: Path) -> None:
    for folder in folders:
        folder.mkdir(exist_ok=True)
        folder.chmod(0o711)


# -------------------------------------------------------------------- start, stop


async def test_a_second_start_keeps_the_rows_and_the_port(server: EmbeddedPostgres):
    first = await server.start()
    await keep_a_row(server)
    assert await server.stop() is Stopped.CLEAN
    assert await server.stop() is Stopped.NOT_RUNNING
    second = await server.start()
    assert second == replace(first, pid=second.pid)
    assert await kept_row(server) == 42


async def test_a_killed_server_comes_back_with_what_it_committed(
    server: EmbeddedPostgres, data: Path
):
    await server.start()
    await keep_a_row(server)
    await server.kill()
    assert (data / "postgres/data/postmaster.pid").exists()
    await server.start()
    assert await kept_row(server) == 42


async def test_two_starts_at_once_make_one_server(data: Path):
    both = [EmbeddedPostgres(data=data) for _ in range(2)]
    started = await asyncio.gather(*(server.start() for server in both))
    assert started[0].pid == started[1].pid
    assert sorted(one.adopted for one in started) == [False, True]
    await both[0].remove()
    assert not (data / "postgres").exists()


async def test_sessions_do_not_delay_the_stop(server: EmbeddedPostgres):
    await server.start()
    connection = await asyncpg.connect(server.superuser_dsn())
    assert await server.stop() is Stopped.CLEAN
    with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, OSError)):
        await connection.execute("select 1")
    connection.terminate()


# ------------------------------------------------------------------------- private


async def test_what_is_secret_is_private(server: EmbeddedPostgres, data: Path):
    await server.start()
    home = data / "postgres"
    assert not mode(data) & 0o067, "others may at most pass through"
    assert not mode(home) & 0o067
    assert {mode(home / name) for name in ("data", "socket")} == {0o700}
    assert {mode(path) for path in home.iterdir() if path.is_file()} == {0o600}
    assert sorted(path.name for path in home.iterdir()) == [
        "data", "lock", "log", "password", "pid", "port", "socket",
    ]  # fmt: skip


async def test_without_the_password_nobody_comes_in(
    server: EmbeddedPostgres, data: Path
):
    started = await server.start()
    for host in ("127.0.0.1", str(data / "postgres" / "socket")):
        with pytest.raises(asyncpg.InvalidPasswordError):
            await asyncpg.connect(
                host=host, port=started.port, user="postgres", password="guess"
            )


async def test_passwords_stay_out_of_the_log(server: EmbeddedPostgres, data: Path):
    await server.start()
    async with connected(server) as connection:
        with pytest.raises(asyncpg.UndefinedObjectError):
            await connection.execute("alter role nobody password 'in-no-log'")
    log = (data / "postgres" / "log").read_text()
    assert "does not exist" in log
    assert "in-no-log" not in log


async def test_a_role_connects_with_its_own_password(server: EmbeddedPostgres):
    await server.start()
    async with connected(server) as connection:
        await connection.execute("create role \"a b\" login password 'p@/s'")
    dsn = server.dsn(user="a b", password="p@/s", database="postgres")
    connection = await asyncpg.connect(dsn)
    assert await connection.fetchval("select current_user") == "a b"
    await connection.close()


async def test_a_path_too_long_for_a_socket_has_none(data: Path):
    deep = data / ("d" * 60) / ("e" * 60)
    make_passable(data, deep.parent, deep)
    server = EmbeddedPostgres(data=deep)
    await server.start()
    assert list((deep / "postgres" / "socket").iterdir()) == []
    async with connected(server) as connection:
        assert await connection.fetchval("select 1") == 1
    await server.remove()


# -------------------------------------------------------------------- unclean ends


async def test_a_pid_that_was_given_away_does_not_prevent_the_start(
    server: EmbeddedPostgres, data: Path
):
    """PostgreSQL by itself refuses when a process of its user has that pid now."""
    await server.start()
    await keep_a_row(server)
    await server.kill()
    account = server_account(data / "postgres" / "data")
    stranger = await asyncio.create_subprocess_exec(
        "/bin/cat",
        stdin=subprocess.PIPE,
        user=None if account is None else account.uid,
    )
    left = data / "postgres/data/postmaster.pid"
    lines = left.read_text().splitlines()
    left.write_text("\n".join([str(stranger.pid), *lines[1:]]) + "\n")
    assert not (await server.start()).adopted
    assert await kept_row(server) == 42
    assert identify(stranger.pid) is not None
    await stranger.communicate(b"")


async def test_what_a_killed_server_left_behind_does_not_prevent_the_start(
    server: EmbeddedPostgres,
):
    await server.start()
    await keep_a_row(server)
    connection = await asyncpg.connect(server.superuser_dsn())
    backend = await connection.fetchval("select pg_backend_pid()")
    os.kill(backend, signal.SIGSTOP)  # it cannot notice that its server dies
    await server.kill()
    await server.start()
    assert identify(backend) is None
    assert await kept_row(server) == 42
    connection.terminate()


async def test_a_first_start_that_was_cut_off_is_made_anew(data: Path):
    server = EmbeddedPostgres(data=data)
    half = data / "postgres" / "initdb" / "data"
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n")
    await server.start()
    await keep_a_row(server)
    assert not half.parent.exists()
    await server.remove()


async def test_a_server_started_by_hand_is_not_disturbed(
    server: EmbeddedPostgres, data: Path
):
    first = await server.start()
    for trace in ("pid", "lock"):  # as if it had not been started from here
        (data / "postgres" / trace).unlink()
    with pytest.raises(ServerPlaceError, match=str(first.pid)):
        await server.start()
    assert identify(first.pid) is not None
    os.kill(first.pid, signal.SIGQUIT)

    async def is_gone() -> bool:
        return identify(first.pid) is None

    assert await within(DEADLINE_SECONDS, is_gone)


# -------------------------------------------------------------------------- errors


async def test_a_refused_start_quotes_the_log_and_names_it(
    server: EmbeddedPostgres, data: Path
):
    await server.start()
    await server.stop()
    (data / "postgres/data/PG_VERSION").write_text("9.6\n")
    with pytest.raises(ServerFailedError) as refused:
        await server.start()
    assert str(data / "postgres" / "log") in str(refused.value)
    assert "incompatible with server" in " ".join(refused.value.lines)
    assert server.pid is None


async def test_a_lost_password_is_not_replaced_by_a_wrong_one(
    server: EmbeddedPostgres, data: Path
):
    await server.start()
    await server.stop()
    (data / "postgres" / "password").unlink()
    with pytest.raises(ServerPlaceError, match="restore that file"):
        await server.start()


@pytest.fixture
def small_disk(data: Path) -> Iterator[Path]:
    """A disk of its own, too small for a cluster; only root can make one."""
    mount = ("/bin/mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(data))
    if os.geteuid() != 0 or subprocess.run(mount, check=False).returncode != 0:
        pytest.skip("a small disk needs the right to mount one")
    yield data
    subprocess.run(("/bin/umount", str(data)), check=True)


async def test_a_full_disk_is_named(small_disk: Path):
    with pytest.raises(ServerFailedError, match="free space on the disk of"):
        await EmbeddedPostgres(data=small_disk).start()
