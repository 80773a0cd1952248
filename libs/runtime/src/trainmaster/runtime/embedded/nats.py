"""Owns the embedded nats-server: the log that every service reads and writes."""

import asyncio
import json
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypedDict, cast

from trainmaster.runtime.embedded.errors import ServerFailedError
from trainmaster.runtime.embedded.files import (
    Lock,
    private_directory,
    read_kept,
    write_private,
)
from trainmaster.runtime.embedded.nats_configuration import (
    NatsUser,
    nats_configuration,
    server_name,
)
from trainmaster.runtime.embedded.ports import (
    LOOPBACK,
    Port,
    kept_port,
    settle_port,
)
from trainmaster.runtime.embedded.process import send
from trainmaster.runtime.embedded.programs import NATS_PROGRAM, find_nats
from trainmaster.runtime.embedded.server import (
    Launch,
    Rung,
    ServerProcess,
    Started,
    Stopped,
    within,
)

READY_SECONDS: Final = 60.0
"""A large store is read before the port opens."""
GREETING_SECONDS: Final = 1.0
RELOAD_SECONDS: Final = 5.0
STOP: Final = (Rung(signal_number=signal.SIGTERM, seconds=15.0),)
"""SIGUSR2 would wait half a minute for clients that reconnect anyway."""
_RELOADED: Final = "Reloaded server configuration"
_REFUSED: Final = "Failed to reload server configuration"


class _Greeting(TypedDict, total=False):
    server_name: str
    jetstream: bool


class EmbeddedNats:
    """The nats-server of one data directory."""

    def __init__(
        self, *, data: Path, users: Sequence[NatsUser] = (), monitor: bool = False
    ) -> None:
        self._home = data.resolve() / "nats"
        self._store = self._home / "store"
        self._configuration = self._home / "nats.conf"
        self._users = tuple(users)
        self._monitor = monitor
        self._server = ServerProcess(
            name="nats-server",
            program=NATS_PROGRAM,
            home=self._home,
            workdir=self._home,
        )

    @property
    def port(self) -> int | None:
        """Where it listens; None before the first start."""
        return kept_port(self._home / "port")

    @property
    def monitor_port(self) -> int | None:
        """Where its own figures are; None without `monitor`."""
        return kept_port(self._home / "monitor_port") if self._monitor else None

    @property
    def url(self) -> str:
        """The address, without a user."""
        return f"nats://{LOOPBACK}:{self.port}"

    @property
    def pid(self) -> int | None:
        """Its process, if it runs."""
        running = self._server.find()
        return None if running is None else running.pid

    async def start(self, *, move: bool = True) -> Started:
        """Start it, or adopt the one that runs, with exactly these users.

        With `move` it may take another port when a stranger has its own.
        """
        private_directory(self._home.parent)
        with await self._server.turn():
            private_directory(self._home)
            if await self._adopt():
                return self._started(adopted=True, moved_from=None)
            with await self._server.claim(STOP) as lock:
                port = await self._start_new(lock, move=move)
            return self._started(adopted=False, moved_from=port.moved_from)

    async def stop(self) -> Stopped:
        """Stop it, whoever started it; stopping twice is a no-op."""
        return await self._server.stop(STOP)

    async def kill(self) -> None:
        """End it as a power cut would."""
        await self._server.kill()

    async def reload(self, users: Sequence[NatsUser]) -> None:
        """Change who may do what; connections stay, and lose what they may no more."""
        before, since = self._configuration.read_text(), self._server.log.size()
        text = self._text(users)
        write_private(self._configuration, text)
        try:
            await self._reloaded(since)
        except ServerFailedError:
            write_private(self._configuration, before)
            raise
        self._users = tuple(users)

    async def _adopt(self) -> bool:
        """Take over a server that answers, and give it our users if it has others."""
        if not await self._server.answers_already(self._answers):
            return False
        if self._monitor and self.monitor_port is None:
            return False  # it has none, and only a new start brings one
        if read_kept(self._configuration) == self._text(self._users).strip():
            return True
        try:
            await self.reload(self._users)
        except ServerFailedError:
            return False  # more than its users differs: only a new start brings that
        return True

    async def _start_new(self, lock: Lock, *, move: bool) -> Port:
        port = settle_port(self._home / "port", move=move)
        if self._monitor:
            settle_port(self._home / "monitor_port")
        private_directory(self._store)
        write_private(self._configuration, self._text(self._users))
        command = (str(find_nats()), "-c", str(self._configuration))
        self._server.spawn_server(Launch(command=command, directory=self._home), lock)
        await self._server.ready(answers=self._answers, seconds=READY_SECONDS)
        return port

    def _started(self, *, adopted: bool, moved_from: int | None) -> Started:
        pid, port = self.pid, self.port
        if pid is None or port is None:
            raise self._server.failed("ended just after it had started")
        return Started(pid=pid, port=port, adopted=adopted, moved_from_port=moved_from)

    def _text(self, users: Sequence[NatsUser]) -> str:
        return nats_configuration(
            port=self.port or 0,
            monitor_port=self.monitor_port,
            store=self._store,
            users=users,
        )

    async def _answers(self) -> bool:
        port = self.port
        if port is None:
            return False
        try:
            async with asyncio.timeout(GREETING_SECONDS):
                greeting = await _greeting(port)
        except (OSError, TimeoutError, ValueError):
            return False
        expected = server_name(self._store)
        return greeting.get("server_name") == expected and "jetstream" in greeting

    async def _reloaded(self, since: int) -> None:
        running = self._server.find()
        if running is None or not send(running, signal.SIGHUP):
            raise self._server.failed("does not run, so it cannot be reloaded")

        async def answered() -> bool:
            said = "\n".join(self._server.log.said(since=since))
            return _RELOADED in said or _REFUSED in said

        await within(RELOAD_SECONDS, answered)
        said = "\n".join(self._server.log.said(since=since))
        if _RELOADED not in said:
            raise self._server.failed("did not take its new configuration")


async def _greeting(port: int) -> _Greeting:
    """Read the INFO line a nats-server sends to whoever connects."""
    reader, writer = await asyncio.open_connection(LOOPBACK, port)
    try:
        line = await reader.readline()
    finally:
        writer.close()
        await writer.wait_closed()
    return cast("_Greeting", json.loads(line.removeprefix(b"INFO ")))
