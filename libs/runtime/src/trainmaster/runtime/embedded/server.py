"""Owns one server process: one at most in a place, found again, stopped in steps."""

import os
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from trainmaster.runtime.clock import pause
from trainmaster.runtime.embedded.account import Account
from trainmaster.runtime.embedded.errors import (
    ServerBusyError,
    ServerFailedError,
    ServerPlaceError,
)
from trainmaster.runtime.embedded.files import Lock, read_pid, write_pid
from trainmaster.runtime.embedded.log import ServerLog
from trainmaster.runtime.embedded.process import (
    Identity,
    identify,
    is_running,
    send,
    working_in,
)

POLL_SECONDS: Final = 0.004
ADOPT_SECONDS: Final = 3.0
"""How long a server that runs already may take to answer before it is replaced."""
LEFTOVER_SECONDS: Final = 3.0
"""How long processes of a dead server may take to notice that it is dead."""
CLAIM_SECONDS: Final = 60.0
KILL_SECONDS: Final = 10.0
QUOTED_LINES_MAX: Final = 12
ENVIRONMENT: Final[Mapping[str, str]] = {
    "PATH": os.defpath,
    "LC_ALL": "C",
    "TZ": "UTC",
}
"""Nothing else is inherited: PGPORT, LD_LIBRARY_PATH and the like are the user's."""

_CHILDREN: Final[list[subprocess.Popen[bytes]]] = []
"""A server outlives the object that started it; to be its parent is for the process."""

Answers = Callable[[], Awaitable[bool]]


class Stopped(StrEnum):
    """How a server came to its end."""

    NOT_RUNNING = "was not running"
    CLEAN = "stopped cleanly"
    FORCED = "was killed after it did not stop in time"


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """What a start found or did."""

    pid: int
    port: int
    adopted: bool = False
    moved_from_port: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How a process is started."""

    command: tuple[str, ...]
    directory: Path
    account: Account | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One step of a stop ladder."""

    signal_number: int
    seconds: float


KILL: Final = Rung(signal_number=signal.SIGKILL, seconds=KILL_SECONDS)


class ServerProcess:
    """The server of one directory, whoever started it."""

    def __init__(self, *, name: str, program: str, home: Path, workdir: Path) -> None:
        self.name = name
        self.log = ServerLog(home / "log")
        self._program = program
        self._home = home
        self._workdir = workdir
        self._pid_file = home / "pid"
        self._turn_file = home.with_name(f"{home.name}.starting")
        self._child: subprocess.Popen[bytes] | None = None
        self._log_began = 0

    # ------------------------------------------------------------------- finding

    def find(self) -> Identity | None:
        """Find the server that runs here, ours or one left by an earlier start."""
        self._reap()
        try:
            known = read_pid(self._pid_file)
        except PermissionError as error:
            raise self._not_ours() from error
        return known if known is not None and is_running(known) else None

    async def turn(self) -> Lock:
        """Wait until nobody else starts a server here."""
        deadline = time.monotonic() + CLAIM_SECONDS
        while (turn := self._lock(self._turn_file)) is None:
            if time.monotonic() >= deadline:
                raise self._busy()
            await pause(POLL_SECONDS)
        return turn

    async def answers_already(self, answers: Answers) -> bool:
        """Tell whether a server runs here and answers, so that it can be adopted."""
        return self.find() is not None and await within(ADOPT_SECONDS, answers)

    async def claim(self, ladder: tuple[Rung, ...]) -> Lock:
        """Win the right to start a server here; one that runs is stopped.

        What a killed server left behind is given time to end, then killed: its head is
        gone, it can only do harm.
        """
        await self.stop(ladder)
        began = time.monotonic()
        while (lock := self._lock(self._home / "lock")) is None:
            waited = time.monotonic() - began
            if waited >= CLAIM_SECONDS:
                raise self._busy()
            if waited >= LEFTOVER_SECONDS:
                self._kill_leftovers()
            await pause(POLL_SECONDS)
        return lock

    def _lock(self, path: Path) -> Lock | None:
        try:
            return Lock.attempt(path)
        except PermissionError as error:
            raise self._not_ours() from error

    def _kill_leftovers(self) -> None:
        for process in working_in(self._workdir, program=self._program):
            send(process, signal.SIGKILL)

    # ------------------------------------------------------------------ starting

    def spawn(self, launch: Launch, lock: Lock) -> subprocess.Popen[bytes]:
        """Start a process that holds the lock, logs here, and outlives us."""
        account = launch.account
        self._log_began = self.log.size()
        with self.log.appending() as log:
            try:
                return subprocess.Popen(
                    launch.command,
                    cwd=launch.directory,
                    env=ENVIRONMENT,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=(lock.descriptor,),
                    start_new_session=True,  # a terminal's Ctrl-C must not reach it
                    umask=0o077,
                    user=None if account is None else account.uid,
                    group=None if account is None else account.gid,
                    extra_groups=None if account is None else (),
                )
            except OSError as error:
                raise self.failed(f"could not be run ({error})") from error

    async def run(self, launch: Launch, lock: Lock, *, seconds: float) -> None:
        """Run a program that prepares the server to its end."""
        child = self.spawn(launch, lock)

        async def ended() -> bool:
            return child.poll() is not None

        try:
            if not await within(seconds, ended):
                raise self.failed(f"was not prepared within {seconds:.0f} s")
        finally:
            child.kill()  # a no-op unless it was too slow, or we were cancelled
            child.wait()
        if child.returncode != 0:
            program = Path(launch.command[0]).name
            raise self.failed(
                f"could not be prepared ({program}: exit code {child.returncode})"
            )

    def spawn_server(self, launch: Launch, lock: Lock) -> None:
        """Start the server itself and keep which process it is."""
        self._child = self.spawn(launch, lock)
        _CHILDREN.append(self._child)
        process = identify(self._child.pid)
        if process is None:
            return  # it ended at once: `ready` will say so
        try:
            write_pid(self._pid_file, process)
        except ServerPlaceError:
            self._child.kill()  # nobody would find it again
            raise

    async def ready(self, *, answers: Answers, seconds: float) -> Identity:
        """Wait until the server just started answers; if it does not, say why."""
        deadline = time.monotonic() + seconds
        while not await answers():
            if (code := self._reap()) is not None:
                raise self.failed(f"ended with exit code {code} instead of starting")
            if time.monotonic() >= deadline:
                await self.kill()
                raise self.failed(f"did not answer within {seconds:.0f} s")
            await pause(POLL_SECONDS)
        running = self.find()
        if running is None:
            raise self.failed("ended just after it had started")
        return running

    # ------------------------------------------------------------------- stopping

    async def stop(self, ladder: tuple[Rung, ...]) -> Stopped:
        """Ask the server to end, step by step; stopping twice is a no-op."""
        running = self.find()
        if running is None:
            return Stopped.NOT_RUNNING
        for rung in (*ladder, KILL):
            send(running, rung.signal_number)
            send(running, signal.SIGCONT)  # one that was frozen hears it now
            if await within(rung.seconds, lambda: self._is_gone(running)):
                self._pid_file.unlink(missing_ok=True)
                return Stopped.CLEAN if rung is ladder[0] else Stopped.FORCED
        raise self.failed(f"(pid {running.pid}) does not end, not even on SIGKILL")

    async def kill(self) -> None:
        """End the server as a power cut would, and leave everything as it lies."""
        running = self.find()
        if running is not None:
            send(running, signal.SIGKILL)
            await within(KILL_SECONDS, lambda: self._is_gone(running))

    async def _is_gone(self, process: Identity) -> bool:
        self._reap()
        return not is_running(process)

    def _reap(self) -> int | None:
        """Take the exit codes of our children, so that no zombie stays."""
        _CHILDREN[:] = [child for child in _CHILDREN if child.poll() is None]
        return None if self._child is None else self._child.poll()

    # ------------------------------------------------------------------ reporting

    def failed(self, what: str) -> ServerFailedError:
        """Build the error that quotes what the server said since it was started."""
        return ServerFailedError(
            server=self.name,
            what=what,
            log=self.log.path,
            lines=self.log.said(since=self._log_began)[-QUOTED_LINES_MAX:],
        )

    def _not_ours(self) -> ServerPlaceError:
        return ServerPlaceError(
            server=self.name,
            place=self._home,
            why="it belongs to another user",
            hint="run as that user, or choose another data directory",
        )

    def _busy(self) -> ServerBusyError:
        return ServerBusyError(
            server=self.name, place=self._home, seconds=CLAIM_SECONDS
        )


async def within(seconds: float, answers: Answers) -> bool:
    """Ask until the answer is yes, or the time is over."""
    deadline = time.monotonic() + seconds
    while not await answers():
        if time.monotonic() >= deadline:
            return False
        await pause(POLL_SECONDS)
    return True
