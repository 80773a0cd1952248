"""The embedded servers as root, as an ordinary user, and after a killed start."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from trainmaster.runtime.embedded import (
    EmbeddedNats,
    EmbeddedPostgres,
    NatsUser,
    ServerPlaceError,
)
from trainmaster.runtime.embedded.account import find_account
from trainmaster.runtime.embedded.programs import PostgresInstall, find_postgres

pytestmark = pytest.mark.integration

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root changes users")
ADMIN = NatsUser(name="admin", password="a", publish=(">",), subscribe=(">",))
PROGRAM = """
import asyncio, concurrent.futures.thread, os, signal, sys
from pathlib import Path
import asyncpg
from trainmaster.runtime.embedded import EmbeddedNats, EmbeddedPostgres, NatsUser
from trainmaster.runtime.embedded.programs import find_nats

find_nats()  # Python itself may live where only root can read: import all before
data, uid, gid, end = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
if os.geteuid() != uid:
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
os.environ["HOME"] = str(data)

async def main():
    admin = NatsUser(name="admin", password="a", publish=(">",), subscribe=(">",))
    nats = EmbeddedNats(data=data, users=[admin])
    postgres = EmbeddedPostgres(data=data)
    started = await asyncio.gather(nats.start(), postgres.start())
    connection = await asyncpg.connect(postgres.superuser_dsn())
    await connection.execute("create table if not exists kept as select 42 as row")
    await connection.close()
    print(*(one.pid for one in started), flush=True)
    if end == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    print(await nats.stop(), await postgres.stop(), sep="; ")

asyncio.run(main())
"""


@pytest.fixture
def base() -> Iterator[Path]:
    """Not below pytest's own folder: for root, that one is closed to other users."""
    path = Path(tempfile.mkdtemp(prefix="tm-"))
    yield path
    shutil.rmtree(path)


def run_as(data: Path, uid: int, gid: int, *, end: str) -> tuple[int, list[str]]:
    """Start both servers in a process of that user, and end as told."""
    done = subprocess.run(
        (sys.executable, "-c", PROGRAM, str(data), str(uid), str(gid), end),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


def owner_of(pid: int) -> int:
    return Path(f"/proc/{pid}").stat().st_uid


def program_of(pid: int) -> Path:
    return Path(f"/proc/{pid}/exe").readlink()


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


async def kept_row(server: EmbeddedPostgres) -> int:
    connection = await asyncpg.connect(server.superuser_dsn())
    try:
        return await connection.fetchval("select row from kept")
    finally:
        await connection.close()


def ordinary_user() -> tuple[int, int]:
    """Ourselves, or when we are root someone who is not."""
    if os.geteuid() != 0:
        return os.geteuid(), os.getegid()
    account = find_account("nobody")
    if account is None:
        pytest.skip("this machine has no user `nobody`")
    return account.uid, account.gid


def test_an_ordinary_user_starts_and_stops_both(base: Path):
    uid, gid = ordinary_user()
    os.chown(base, uid, gid)
    for _ in range(2):
        code, lines = run_as(base, uid, gid, end="stopped")
        assert code == 0
        assert lines[1] == "stopped cleanly; stopped cleanly"
    owners = {path.stat().st_uid for path in (base / "postgres").iterdir()}
    assert owners == {uid}


async def test_servers_of_a_killed_start_are_adopted(base: Path):
    code, lines = run_as(base, os.geteuid(), os.getegid(), end="killed")
    assert code == -signal.SIGKILL
    nats, postgres = EmbeddedNats(data=base, users=[ADMIN]), EmbeddedPostgres(data=base)
    started = [await nats.start(), await postgres.start()]
    assert [one.adopted for one in started] == [True, True]
    assert " ".join(str(one.pid) for one in started) == lines[0]
    assert await kept_row(postgres) == 42
    await nats.stop()
    await postgres.remove()


@needs_root
async def test_root_runs_the_cluster_of_an_ordinary_user_as_that_user(base: Path):
    uid, gid = ordinary_user()
    os.chown(base, uid, gid)
    run_as(base, uid, gid, end="stopped")
    postgres = EmbeddedPostgres(data=base)
    started = await postgres.start()
    assert owner_of(started.pid) == uid
    assert await kept_row(postgres) == 42
    await postgres.stop()


@needs_root
def test_the_directory_of_another_user_is_refused_with_a_reason(base: Path):
    uid, gid = ordinary_user()
    run_as(base, 0, 0, end="stopped")
    base.chmod(0o755)
    done = subprocess.run(
        (sys.executable, "-c", PROGRAM, str(base), str(uid), str(gid), "stopped"),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "it belongs to another user; run as that user" in done.stderr


@needs_root
async def test_root_never_runs_postgres_as_root(base: Path):
    postgres = EmbeddedPostgres(data=base)
    started = await postgres.start()
    assert owner_of(started.pid) != 0
    assert mode(base) == 0o710, "passed through by one group, no more"
    await postgres.remove()


@needs_root
async def test_below_a_closed_folder_the_cluster_lives_elsewhere(base: Path):
    data = base / "closed" / "data"
    data.parent.mkdir(mode=0o700)
    postgres = EmbeddedPostgres(data=data)
    await postgres.start()
    place = data / "postgres"
    elsewhere = place.resolve()
    assert place.is_symlink()
    assert not elsewhere.is_relative_to(base)
    assert mode(data.parent) == 0o700, "not ours to open"
    await postgres.stop()
    again = await EmbeddedPostgres(data=data).start()
    assert again.port == postgres.port
    await postgres.remove()
    assert not elsewhere.exists()
    assert not place.is_symlink()


@needs_root
async def test_a_cluster_whose_elsewhere_is_gone_is_not_replaced_silently(base: Path):
    (base / "postgres").symlink_to(base / "gone")
    with pytest.raises(ServerPlaceError, match="which is gone"):
        await EmbeddedPostgres(data=base).start()


@needs_root
async def test_programs_in_a_closed_folder_are_made_reachable(base: Path):
    install, data = closed_install(base), base / "data"
    postgres = EmbeddedPostgres(data=data, install=install)
    started = await postgres.start()
    assert program_of(started.pid).is_relative_to(data / "postgres" / "programs")
    await postgres.remove()


def closed_install(base: Path) -> PostgresInstall:
    """PostgreSQL as in an environment below root's home."""
    base.chmod(0o711)
    site, installed = base / "venv" / "site", find_postgres()
    for part in installed.parts:
        shutil.copytree(installed.site / part, site / part, copy_function=_link_or_copy)
    site.parent.chmod(0o700)
    return PostgresInstall(site=site)


def _link_or_copy(source: str, target: str) -> None:
    try:
        Path(target).hardlink_to(source)
    except OSError:
        shutil.copy2(source, target)
