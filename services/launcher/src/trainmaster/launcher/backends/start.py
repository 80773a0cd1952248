"""Starts ranks, each at most once, whoever asks, how often and whoever dies meanwhile.

The order is what makes it so: take the rank's lock, look for an earlier outcome, look
whether the attempt is closed, then start a shim that inherits the lock. A sweep closes
the attempt first and trusts its looks only while no lock is held.
"""

import asyncio
import os
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from trainmaster.launcher.backends import cgroup
from trainmaster.launcher.backends.directory import Directory, RankDirectory
from trainmaster.launcher.backends.model import (
    TOKEN_VARIABLE,
    Hindrance,
    RankKey,
    RankRequest,
    Spawned,
    SpawnFailed,
)
from trainmaster.launcher.backends.pidfd import pidfd_open
from trainmaster.launcher.backends.sweep import look
from trainmaster.launcher.backends.waiting import readable
from trainmaster.runtime.clock import pause
from trainmaster.runtime.failpoints import FAILPOINTS

_EXECUTED_SECONDS: Final = 30.0  # from shim to rank, over a slow network file system
_LOCK_TRIES: Final = 100  # a start in flight whose agent has died takes 0.03 s
_LOCK_STEP_SECONDS: Final = 0.02
_CATCHABLE: Final = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}


class Starter:
    """Starts shims; `command` runs one when the directory and two files are added."""

    def __init__(
        self,
        directory: Directory,
        command: Sequence[str],
        cgroup_parent: Path | None,
    ) -> None:
        self._directory = directory
        self._command = tuple(command)
        self._cgroup_parent = cgroup_parent
        self._starts: dict[RankKey, asyncio.Task[Spawned | SpawnFailed]] = {}
        self._shims: dict[int, asyncio.AbstractEventLoop] = {}

    async def start(self, request: RankRequest) -> Spawned | SpawnFailed:
        """Start a rank, or say what an earlier start came to.

        What was begun is finished even if the caller is cancelled.
        """
        task = self._starts.get(request.key)
        if task is None:
            task = asyncio.create_task(self._start(request))
            self._starts[request.key] = task
            task.add_done_callback(lambda _: self._starts.pop(request.key))
        return await asyncio.shield(task)

    def release(self) -> None:
        """Stop waiting for shims to end; they and their ranks go on."""
        for pidfd, loop in self._shims.items():
            loop.remove_reader(pidfd)
            os.close(pidfd)
        self._shims.clear()

    async def _start(self, request: RankRequest) -> Spawned | SpawnFailed:
        rank = self._directory.rank(request.key)
        rank.make()
        outcome = rank.outcome
        if outcome is not None:
            return outcome
        lock = await _lock(rank)
        if lock is None:
            return SpawnFailed(key=rank.key, hindrance=Hindrance.BUSY)
        try:
            return await self._start_locked(rank, request, lock)
        finally:
            os.close(lock)

    async def _start_locked(
        self, rank: RankDirectory, request: RankRequest, lock: int
    ) -> Spawned | SpawnFailed:
        outcome = rank.outcome
        if outcome is not None:
            return outcome
        if self._directory.is_closed(rank.key.attempt):
            return SpawnFailed(key=rank.key, hindrance=Hindrance.CLOSED)
        leftovers = await asyncio.to_thread(look, [rank]) if rank.request else ()
        if leftovers:
            return SpawnFailed(key=rank.key, hindrance=Hindrance.UNKNOWN)
        own = cgroup.make(self._cgroup_parent, rank.key)
        path = str(own.path) if isinstance(own, cgroup.Made) else None
        rank.write_request({**request.document, "cgroup": path})
        FAILPOINTS.reach("process.before_spawn")
        outcome = await self._run_shim(rank, request.token, lock)
        if isinstance(outcome, SpawnFailed):
            return outcome
        return replace(outcome, already=False, facts={"cgroup": own.fact})

    async def _run_shim(
        self, rank: RankDirectory, token: str, lock: int
    ) -> Spawned | SpawnFailed:
        """Start a shim and wait until it has said how that went."""
        reader, writer = os.pipe()
        try:
            pid = _launch(self._command, rank.path, token, kept=(writer, lock))
        finally:
            os.close(writer)
        FAILPOINTS.reach("process.after_spawn")
        self._reap_at_its_end(pid)
        try:
            said = await readable(reader, within_seconds=_EXECUTED_SECONDS)
        finally:
            os.close(reader)
        return rank.outcome or SpawnFailed(
            key=rank.key,
            hindrance=Hindrance.SHIM_DIED if said else Hindrance.SILENT,
            what=rank.shim_errors() if said else f"{_EXECUTED_SECONDS:g} seconds",
        )

    def _reap_at_its_end(self, pid: int) -> None:
        """Leave no zombie behind; shims of an earlier agent are init's."""
        pidfd, loop = pidfd_open(pid), asyncio.get_running_loop()

        def reap() -> None:
            loop.remove_reader(pidfd)
            os.close(pidfd)
            del self._shims[pidfd]
            os.waitpid(pid, 0)

        self._shims[pidfd] = loop
        loop.add_reader(pidfd, reap)


async def _lock(rank: RankDirectory) -> int | None:
    """Take the lock on starting, from a start in flight too if it ends soon."""
    for _ in range(_LOCK_TRIES):
        lock = rank.lock()
        if lock is not None:
            return lock
        await pause(_LOCK_STEP_SECONDS)
    return None


def _launch(
    command: Sequence[str], path: Path, token: str, *, kept: tuple[int, int]
) -> int:
    """Execute a shim that inherits two files; it blocks every signal from the start.

    They are numbered anew: older C libraries do not hand down a file under its own
    number, and a number below 3 is needed for the standard files.
    """
    first = max(kept) + 1
    errors = (str(path / "shim.err"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    return os.posix_spawn(
        command[0],
        [*command, str(path), *(str(first + at) for at in range(len(kept)))],
        {TOKEN_VARIABLE: token},
        file_actions=[
            *((os.POSIX_SPAWN_DUP2, fd, first + at) for at, fd in enumerate(kept)),
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, *errors),
        ],
        setsigmask=_CATCHABLE,
        setsigdef=_CATCHABLE,
    )
