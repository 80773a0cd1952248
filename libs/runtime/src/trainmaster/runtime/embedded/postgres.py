"""Owns the embedded PostgreSQL: the projections and truth tables of every service."""

import asyncio
import os
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

import asyncpg

from trainmaster.runtime.embedded.account import Account, server_account
from trainmaster.runtime.embedded.errors import ServerPlaceError
from trainmaster.runtime.embedded.files import (
    Lock,
    kept_password,
    private_directory,
    read_kept,
    write_private,
)
from trainmaster.runtime.embedded.home import (
    lent_directory,
    reachable_install,
    settle_home,
)
from trainmaster.runtime.embedded.ports import Port, kept_port, settle_port
from trainmaster.runtime.embedded.postgres_settings import (
    SUPERUSER,
    dsn,
    fits_a_socket,
    initdb_arguments,
    parse_postmaster,
    server_arguments,
)
from trainmaster.runtime.embedded.process import working_in
from trainmaster.runtime.embedded.programs import PostgresInstall, find_postgres
from trainmaster.runtime.embedded.server import (
    Launch,
    Rung,
    ServerProcess,
    Started,
    Stopped,
)

READY_SECONDS: Final = 60.0
"""After an unclean end it first replays its log."""
INITDB_SECONDS: Final = 120.0
CONNECT_SECONDS: Final = 2.0
STOP: Final = (
    Rung(signal_number=signal.SIGINT, seconds=15.0),  # ends sessions, writes all
    Rung(signal_number=signal.SIGQUIT, seconds=10.0),  # ends now, replays at next start
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where a cluster is, as whom it runs, and the right to start it."""

    home: Path
    account: Account | None
    lock: Lock

    def launch(self, command: tuple[str, ...]) -> Launch:
        return Launch(command=command, directory=self.home, account=self.account)


class EmbeddedPostgres:
    """The PostgreSQL of one data directory."""

    def __init__(self, *, data: Path, install: PostgresInstall | None = None) -> None:
        self._data = data.resolve()
        self._place = self._data / "postgres"
        self._install = install
        self._server = ServerProcess(
            name="PostgreSQL",
            program="postgres",
            home=self._place,
            workdir=self._place / "data",
        )

    @property
    def port(self) -> int | None:
        """Where it listens; None before the first start."""
        return kept_port(self._place / "port")

    @property
    def pid(self) -> int | None:
        """Its first process, if it runs."""
        running = self._server.find()
        return None if running is None else running.pid

    def dsn(self, *, user: str, password: str, database: str) -> str:
        """Say how a role connects."""
        return dsn(user=user, password=password, port=self.port or 0, database=database)

    def superuser_dsn(self, database: str = SUPERUSER) -> str:
        """Say how the one connects who makes the roles."""
        password = kept_password(self._place / "password")
        return self.dsn(user=SUPERUSER, password=password, database=database)

    async def start(self, *, move: bool = True) -> Started:
        """Start it, or adopt the one that runs; the first time a cluster is made.

        With `move` it may take another port when a stranger has its own.
        """
        private_directory(self._data)
        with await self._server.turn():
            if await self._server.answers_already(self._accepts):
                return self._started(adopted=True, moved_from=None)
            account = await asyncio.to_thread(server_account, self._place / "data")
            home = await asyncio.to_thread(settle_home, self._data, account)
            with await self._server.claim(STOP) as lock:
                place = _Place(home=home, account=account, lock=lock)
                port = await self._start_new(place, move=move)
            return self._started(adopted=False, moved_from=port.moved_from)

    async def stop(self) -> Stopped:
        """Stop it, whoever started it; stopping twice is a no-op."""
        return await self._server.stop(STOP)

    async def kill(self) -> None:
        """End it as a power cut would."""
        await self._server.kill()

    async def remove(self) -> None:
        """Stop it and delete its files for good, wherever they had to be made."""
        home = self._place.resolve()
        if not home.is_dir():
            return
        with await self._server.turn(), await self._server.claim(STOP):
            await asyncio.to_thread(shutil.rmtree, home)
        if self._place.is_symlink():
            self._place.unlink()

    async def _start_new(self, place: _Place, *, move: bool) -> Port:
        install = await asyncio.to_thread(
            reachable_install,
            self._install or find_postgres(),
            home=place.home,
            account=place.account,
        )
        cluster = place.home / "data"
        if not cluster.exists():
            await self._make_cluster(install, place)
        _check_password(place.home)
        _forget_dead_postmaster(cluster)
        socket = lent_directory(place.home / "socket", place.account)
        port = settle_port(place.home / "port", move=move)
        arguments = server_arguments(
            cluster=cluster,
            port=port.number,
            socket=socket if fits_a_socket(socket) else None,
        )
        self._server.spawn_server(
            place.launch((str(install.postgres), *arguments)), place.lock
        )
        await self._server.ready(answers=self._is_ready, seconds=READY_SECONDS)
        return port

    async def _make_cluster(self, install: PostgresInstall, place: _Place) -> None:
        """Make a cluster aside and move it into place when it is whole."""
        draft = place.home / "initdb"
        shutil.rmtree(draft, ignore_errors=True)  # of a start that was cut off
        private_directory(draft)
        password_file = draft / "password"
        write_private(password_file, kept_password(place.home / "password") + "\n")
        if place.account is not None:
            os.chown(password_file, place.account.uid, place.account.gid)
        lent_directory(draft, place.account)
        arguments = initdb_arguments(
            cluster=draft / "data", password_file=password_file
        )
        await self._server.run(
            place.launch((str(install.initdb), *arguments)),
            place.lock,
            seconds=INITDB_SECONDS,
        )
        (draft / "data").rename(place.home / "data")
        shutil.rmtree(draft)

    def _started(self, *, adopted: bool, moved_from: int | None) -> Started:
        pid, port = self.pid, self.port
        if pid is None or port is None:
            raise self._server.failed("ended just after it had started")
        return Started(pid=pid, port=port, adopted=adopted, moved_from_port=moved_from)

    async def _is_ready(self) -> bool:
        """Read what the server just started says about itself."""
        kept = read_kept(self._place / "data" / "postmaster.pid")
        status = None if kept is None else parse_postmaster(kept)
        return status is not None and status.ready and status.pid == self.pid

    async def _accepts(self) -> bool:
        """Ask the server found running for something only ours can answer."""
        if not (self._place / "password").exists():
            return False
        try:
            connection = await asyncpg.connect(
                self.superuser_dsn(), timeout=CONNECT_SECONDS
            )
            try:
                cluster = await connection.fetchval("show data_directory")
            finally:
                await connection.close(timeout=CONNECT_SECONDS)
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
            return False
        return cast("str", cluster) == str((self._place / "data").resolve())


def _check_password(home: Path) -> None:
    """Refuse a cluster whose password is lost, rather than draw one that is wrong."""
    if read_kept(home / "password") is None:
        raise ServerPlaceError(
            server="PostgreSQL",
            place=home / "data",
            why=f"its superuser's password is not in {home / 'password'} any more",
            hint=f"restore that file, or move {home / 'data'} away to begin anew",
        )


def _forget_dead_postmaster(cluster: Path) -> None:
    """Remove what an unclean end left, because we know that nobody runs here.

    PostgreSQL itself would refuse to start when that pid is in use again by any process
    of the same user. Its own check of shared memory still guards against our error.
    """
    left = cluster / "postmaster.pid"
    if not left.exists():
        return
    if strangers := working_in(cluster, program="postgres"):
        pids = ", ".join(str(process.pid) for process in strangers)
        raise ServerPlaceError(
            server="PostgreSQL",
            place=cluster,
            why=f"a server that was not started from here works on it (pid {pids})",
            hint="stop that one first",
        )
    left.unlink()
