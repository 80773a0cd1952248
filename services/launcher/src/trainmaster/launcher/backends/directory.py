"""The durable state of a node: one directory for each rank, and what stands in it.

`ROOT/JOB/ATTEMPT/closed` says that nothing starts in the attempt any more.
`ROOT/JOB/ATTEMPT/RANK/` holds what the shim reads and writes (see its module), the
signals we sent, and the lock that makes a start happen once. Who starts a rank holds
the lock and hands it to the shim, which keeps it until the start is written down: so it
is held exactly while a start is in flight, whoever dies.

A file that cannot be read counts as absent. A rename is whole, but a power cut may
leave an empty file; after it the boot id differs and nothing runs anyway.
"""

import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, TypeVar

from pydantic import BaseModel, ValidationError

from trainmaster.core.ids import JobId, token
from trainmaster.launcher.backends.model import (
    TOKEN_VARIABLE,
    AttemptKey,
    Exit,
    Hindrance,
    Identity,
    RankKey,
    SentSignal,
    Spawned,
    SpawnFailed,
)

_PRIVATE_DIRECTORY: Final = 0o700
_PRIVATE_FILE: Final = 0o600


class _Process(BaseModel):
    pid: int
    start_ticks: int


class StartRecord(BaseModel):
    """`started.json`: the rank was executed."""

    rank: _Process
    shim: _Process
    boot_id: str
    at_boot_seconds: float

    @property
    def rank_identity(self) -> Identity:
        """Who the rank is."""
        return Identity(**self.rank.model_dump(), boot_id=self.boot_id)

    @property
    def shim_identity(self) -> Identity:
        """Who looks after it."""
        return Identity(**self.shim.model_dump(), boot_id=self.boot_id)


class FailureRecord(BaseModel):
    """`failed.json`: the rank was never executed."""

    errno: int
    step: str
    what: str

    def about(self, key: RankKey) -> SpawnFailed:
        """Say it of a rank."""
        return SpawnFailed(
            key=key,
            hindrance=Hindrance.STEP,
            step=self.step,
            what=self.what,
            errno=self.errno,
        )


class ExitRecord(BaseModel):
    """`exit.json`: how the rank ended."""

    rank_pid: int
    code: int | None
    signal: int | None
    oom: bool | None
    at: float
    at_boot_seconds: float


class RequestRecord(BaseModel):
    """`request.json`, as far as a rank is found by it."""

    env: dict[str, str]
    cgroup: str | None

    @property
    def token(self) -> str:
        """What its processes carry in their environment."""
        return self.env.get(TOKEN_VARIABLE, "")

    @property
    def cgroup_path(self) -> Path | None:
        """The rank's own cgroup, if it has one."""
        return Path(self.cgroup) if self.cgroup else None


_R = TypeVar("_R", bound=BaseModel)


class RankDirectory:
    """One rank's directory."""

    def __init__(self, path: Path, key: RankKey) -> None:
        self.path = path
        self.key = key

    @property
    def request(self) -> RequestRecord | None:
        """What was asked for; None when nobody asked yet."""
        return self._read("request.json", RequestRecord)

    @property
    def started(self) -> StartRecord | None:
        """Who runs; None before the rank was executed."""
        return self._read("started.json", StartRecord)

    @property
    def failure(self) -> SpawnFailed | None:
        """Why the rank was never executed."""
        record = self._read("failed.json", FailureRecord)
        return record.about(self.key) if record else None

    @property
    def outcome(self) -> Spawned | SpawnFailed | None:
        """What became of the start; None while there was none, or it is in flight."""
        started = self.started
        if started is None:
            return self.failure
        return Spawned(
            key=self.key,
            process=started.rank_identity,
            shim=started.shim_identity,
            already=True,
        )

    @property
    def exited(self) -> ExitRecord | None:
        """How the rank ended."""
        return self._read("exit.json", ExitRecord)

    @property
    def exit(self) -> Exit | None:
        """How the rank ended, and whether a signal of ours came first."""
        record = self.exited
        if record is None:
            return None
        return Exit(
            code=record.code,
            signal=record.signal,
            oom=record.oom,
            by_us=any(s.at_boot_seconds <= record.at_boot_seconds for s in self.sent),
            at_unix_seconds=record.at,
            pid=record.rank_pid,
        )

    @property
    def sent(self) -> tuple[SentSignal, ...]:
        """The signals we sent."""
        path = self.path / "signals"
        lines = path.read_text().splitlines() if path.exists() else []
        parts = (line.split() for line in lines)
        return tuple(
            SentSignal(number=int(number), at_boot_seconds=float(at))
            for number, at in parts
        )

    def record_signal(self, number: int) -> None:
        """Write down that we are about to send a signal."""
        at = time.clock_gettime(time.CLOCK_BOOTTIME)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        fd = os.open(self.path / "signals", flags, _PRIVATE_FILE)
        _write(fd, f"{number} {at:.3f}\n")

    def write_request(self, document: Mapping[str, object]) -> None:
        """Say what to run; only the owner can read it."""
        temporary = self.path / "request.json.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        _write(os.open(temporary, flags, _PRIVATE_FILE), json.dumps(document))
        temporary.rename(self.path / "request.json")

    def shim_errors(self) -> str:
        """Return the last thing the shim said before it died unexpectedly."""
        path = self.path / "shim.err"
        lines = path.read_text(errors="replace").splitlines() if path.exists() else []
        return lines[-1] if lines else "no word from it"

    def make(self) -> None:
        """Make the directory, if need be."""
        self.path.mkdir(mode=_PRIVATE_DIRECTORY, parents=True, exist_ok=True)

    def lock(self) -> int | None:
        """Take the lock on starting; None while a start is in flight."""
        return self._flock(fcntl.LOCK_EX)

    @property
    def in_flight(self) -> bool:
        """Whether a start is just being made."""
        if not self.path.exists():
            return False
        fd = self._flock(fcntl.LOCK_SH)  # whoever only looks does not disturb others
        if fd is None:
            return True
        os.close(fd)
        return False

    def _flock(self, kind: int) -> int | None:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        fd = os.open(self.path / "lock", flags, _PRIVATE_FILE)
        try:
            fcntl.flock(fd, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return None
        return fd

    def _read(self, name: str, model: type[_R]) -> _R | None:
        try:
            return model.model_validate_json((self.path / name).read_bytes())
        except (FileNotFoundError, ValidationError):
            return None


class Directory:
    """All attempts on this node."""

    def __init__(self, root: Path) -> None:
        self._root = root
        root.mkdir(mode=_PRIVATE_DIRECTORY, parents=True, exist_ok=True)

    def attempt_path(self, attempt: AttemptKey) -> Path:
        """Say where an attempt's ranks are."""
        return self._root / token("job", attempt.job) / str(attempt.number)

    def rank(self, key: RankKey) -> RankDirectory:
        """Return a rank's directory, which need not exist."""
        return RankDirectory(self.attempt_path(key.attempt) / str(key.rank), key)

    def ranks(self, attempt: AttemptKey) -> tuple[RankDirectory, ...]:
        """Return the directories of an attempt's ranks that are there."""
        paths = [p for p in self.attempt_path(attempt).glob("*") if p.name.isdecimal()]
        keys = (RankKey(attempt=attempt, rank=int(path.name)) for path in paths)
        both = zip(paths, keys, strict=True)
        found = (RankDirectory(path, key) for path, key in both)
        return tuple(sorted(found, key=lambda directory: directory.key.rank))

    def attempts(self) -> Iterator[AttemptKey]:
        """Name every attempt with a directory on this node."""
        for path in sorted(self._root.glob("*/*")):
            if path.name.isdecimal():
                yield AttemptKey(job=JobId(path.parent.name), number=int(path.name))

    def is_closed(self, attempt: AttemptKey) -> bool:
        """Whether nothing may start in it any more."""
        return (self.attempt_path(attempt) / "closed").exists()

    def close(self, attempt: AttemptKey) -> None:
        """Let nothing start in it any more; this survives a power cut."""
        path = self.attempt_path(attempt)
        path.mkdir(mode=_PRIVATE_DIRECTORY, parents=True, exist_ok=True)
        if self.is_closed(attempt):
            return
        for place, flags in ((path / "closed", os.O_CREAT), (path, os.O_DIRECTORY)):
            fd = os.open(place, flags, _PRIVATE_FILE)
            os.fsync(fd)
            os.close(fd)

    def forget(self, attempt: AttemptKey) -> None:
        """Remove all that is known of an attempt."""
        path = self.attempt_path(attempt)
        if path.exists():
            shutil.rmtree(path)


def _write(fd: int, text: str) -> None:
    with os.fdopen(fd, "w") as file:
        file.write(text)
