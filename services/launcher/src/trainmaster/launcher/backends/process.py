"""Runs ranks as processes of this machine, each under a shim that outlives the agent.

Everything that lasts is in the rank's directory: this object can be made anew at any
time, over ranks that run, and knows them all.
"""

import py_compile
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from trainmaster.launcher.backends import cgroup, ending, proc
from trainmaster.launcher.backends.directory import Directory, RankDirectory
from trainmaster.launcher.backends.model import (
    TOKEN_VARIABLE,
    AttemptKey,
    Exit,
    Found,
    Phase,
    RankKey,
    RankRequest,
    RankSpec,
    Spawned,
    SpawnFailed,
    SweepProof,
)
from trainmaster.launcher.backends.start import Starter
from trainmaster.launcher.backends.sweep import SWEEP_SECONDS, Sweep
from trainmaster.runtime.failpoints import FAILPOINTS

SHIM: Final = Path(__file__).parents[1] / "agent" / "shim.py"


def rank_request(spec: RankSpec, *, token: str) -> RankRequest:
    """Say word by word what the shim is asked; `token` is unique to this start."""
    user = spec.user
    document: Mapping[str, object] = {
        "argv": list(spec.argv),
        "env": {**spec.environment, TOKEN_VARIABLE: token},
        "cwd": str(spec.work_directory),
        "log": str(spec.log),
        "uid": user.uid if user else None,
        "gid": user.gid if user else None,
        "groups": list(user.groups) if user else None,
        "cgroup": None,  # the backend knows where it may make one
    }
    return RankRequest(key=spec.key, token=token, document=document)


class ProcessBackend:
    """Starts, finds, signals and sweeps ranks on this machine.

    Not promised: that a rank's end is known if its shim was killed; that a process
    is found which left its session, cgroup and parents and cleared its environment.
    """

    def __init__(self, *, root: Path, python: str, cgroups: bool = True) -> None:
        self._directory = Directory(root)
        command = (python, "-I", "-S", str(_compiled_shim(root, python)))
        parent = cgroup.find_parent() if cgroups else None
        self._starter = Starter(self._directory, command, parent)

    async def spawn(self, request: RankRequest) -> Spawned | SpawnFailed:
        """Start a rank, once, however often and by how many agents this is asked."""
        return await self._starter.start(request)

    def find(self) -> Sequence[Found]:
        """Name every rank with a directory on this node, and where it is."""
        attempts = self._directory.attempts()
        ranks = (rank for each in attempts for rank in self._directory.ranks(each))
        return [found for rank in ranks if (found := _found(rank)) is not None]

    async def wait(self, key: RankKey) -> Exit:
        """Wait until a rank has ended, whoever started it; see `Exit`."""
        return await ending.exit_of(self._directory.rank(key))

    def signal_group(self, attempt: AttemptKey, number: int) -> Sequence[RankKey]:
        """Send a signal to the process groups of the ranks; name those that got it."""
        ranks = self._directory.ranks(attempt)
        return [rank.key for rank in ranks if ending.signal_group(rank, number)]

    def save_signal(self, attempt: AttemptKey, number: int) -> Sequence[RankKey]:
        """Ask ranks to save, if that does not kill them; name those that got it."""
        ranks = self._directory.ranks(attempt)
        return [rank.key for rank in ranks if ending.signal_if_caught(rank, number)]

    async def stop(self, attempt: AttemptKey, *, grace_seconds: float) -> SweepProof:
        """Let nothing more start, send TERM, wait as long as agreed, sweep."""
        self._directory.close(attempt)
        FAILPOINTS.reach("process.before_term")
        self.signal_group(attempt, signal.SIGTERM)
        ranks = self._directory.ranks(attempt)
        await ending.groups_gone(ranks, within_seconds=grace_seconds)
        FAILPOINTS.reach("process.before_sweep")
        return await self.sweep(attempt)

    async def sweep(
        self, attempt: AttemptKey, *, within_seconds: float = SWEEP_SECONDS
    ) -> SweepProof:
        """Let nothing more start, kill all that is left, and prove it."""
        return await Sweep(self._directory, attempt).run(within_seconds=within_seconds)

    def forget(self, attempt: AttemptKey) -> None:
        """Remove the records of an attempt that was swept clean and reported."""
        self._directory.forget(attempt)

    def release(self) -> None:
        """Let go of this event loop; ranks and shims go on."""
        self._starter.release()


def _found(rank: RankDirectory) -> Found | None:
    """Say where a rank is; None if nobody got as far as asking for it.

    Each thing is looked at before what follows it in a rank's life, which may come in
    between: the lock, the start, the shim, the end.
    """
    in_flight, asked = rank.in_flight, rank.request is not None
    if not in_flight and not asked:
        return None
    started, failure = rank.started, rank.failure
    if started is None:
        waiting = Phase.STARTING if in_flight else Phase.UNKNOWN
        phase = waiting if failure is None else Phase.FAILED
        return Found(key=rank.key, phase=phase, failure=failure)
    process = started.rank_identity
    alive = proc.is_alive(process)
    shim_alive = proc.is_alive(started.shim_identity)
    ended = rank.exit
    if ended is not None:
        phase = Phase.EXITED
    else:
        phase = Phase.RUNNING if shim_alive else Phase.UNKNOWN
    return Found(key=rank.key, phase=phase, alive=alive, process=process, exit=ended)


def _compiled_shim(root: Path, python: str) -> Path:
    """Compile the shim once for all starts, if the interpreter is this one."""
    if python != sys.executable:
        return SHIM
    target = root / "shim.pyc"
    py_compile.compile(str(SHIM), str(target), doraise=True)
    return target
