"""Owns what the agent must not forget: one record for each attempt it was told of.

`ROOT/members/JOB/ATTEMPT/member.json` holds the assignment and every fact said of it.
Once its close is on the log it becomes `closed.json`, which is written through to the
disk and keeps the attempt refused; until then the backend's own mark does. A record
that cannot be read counts as absent: a rename is whole, but a power cut may leave an
empty file, and after it the boot id differs anyway.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from trainmaster.core.facts import (
    MemberClosed,
    MemberPrepared,
    MemberStarted,
    MemberStopped,
)
from trainmaster.core.ids import JobId, token
from trainmaster.core.messages import Assignment
from trainmaster.launcher.backends.model import AttemptKey

_PRIVATE_DIRECTORY: Final = 0o700
_PRIVATE_FILE: Final = 0o600
_LOCK: Final = "agent.lock"
_UNFINISHED: Final = "member.json"
_FINISHED: Final = "closed.json"
_OFFSETS: Final = "offsets.json"
_M = TypeVar("_M", bound=BaseModel)


class MemberRecord(BaseModel):
    """One attempt on this node: the order that carried its spec, and what was said.

    `told` means that the close is on the log, so that nothing need be said again.
    """

    model_config = ConfigDict(frozen=True)

    boot_id: str
    assignment: Assignment
    prepared: MemberPrepared | None = None
    started: MemberStarted | None = None
    stopped: MemberStopped | None = None
    closed: MemberClosed | None = None
    told: bool = False


class Offsets(BaseModel):
    """How many bytes of each file of an attempt were streamed, by its path."""

    bytes_by_path: dict[str, int] = Field(default_factory=dict)


def claim(root: Path) -> int | None:
    """Take a node's directory, held while this file is open; None if another has it.

    The kernel lets go of it when its holder is gone, however that came.
    """
    root.mkdir(mode=_PRIVATE_DIRECTORY, parents=True, exist_ok=True)
    fd = os.open(root / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _PRIVATE_FILE)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    return fd


class Disk:
    """The records of one node."""

    def __init__(self, root: Path) -> None:
        self._root = root / "members"
        self._root.mkdir(mode=_PRIVATE_DIRECTORY, parents=True, exist_ok=True)

    def unfinished_jobs(self) -> list[JobId]:
        """Name the jobs of which something may run, or was not reported to the end."""
        paths = self._root.glob(f"*/*/{_UNFINISHED}")
        return [JobId(name) for name in sorted({path.parts[-3] for path in paths})]

    def of_job(self, job: JobId) -> dict[int, MemberRecord]:
        """Read the records of one job by attempt."""
        paths = self._root.joinpath(token("job", job)).glob("*")
        return dict(_records(paths))

    def save(self, key: AttemptKey, record: MemberRecord) -> None:
        """Replace an attempt's record; what was told survives a power cut."""
        directory = self._directory(key)
        directory.mkdir(mode=_PRIVATE_DIRECTORY, parents=True, exist_ok=True)
        if not record.told:
            _write(directory / _UNFINISHED, record)
            return
        _write(directory / _FINISHED, record, durable=True)
        for folder in (directory, directory.parent, self._root):
            _sync(folder)
        (directory / _UNFINISHED).unlink(missing_ok=True)

    def offsets(self, key: AttemptKey) -> dict[str, int]:
        """Say how far an attempt's files were streamed."""
        kept = _read(self._directory(key) / _OFFSETS, Offsets)
        return kept.bytes_by_path if kept else {}

    def save_offsets(self, key: AttemptKey, offsets: dict[str, int]) -> None:
        """Keep how far an attempt's files were streamed; to repeat some is harmless."""
        directory = self._directory(key)
        if directory.exists():
            _write(directory / _OFFSETS, Offsets(bytes_by_path=offsets))

    def forget_older(self, *, before_unix_seconds: float) -> None:
        """Forget attempts whose reported close is long ago."""
        for path in tuple(self._root.glob(f"*/*/{_FINISHED}")):
            if path.stat().st_mtime >= before_unix_seconds:
                continue
            shutil.rmtree(path.parent)
            of_job = path.parent.parent
            if not any(of_job.iterdir()):
                of_job.rmdir()

    def _directory(self, key: AttemptKey) -> Path:
        return self._root / token("job", key.job) / str(key.number)


def _records(attempts: Iterator[Path]) -> Iterator[tuple[int, MemberRecord]]:
    for path in attempts:
        record = _read(path / _FINISHED, MemberRecord)
        record = record or _read(path / _UNFINISHED, MemberRecord)
        if record is not None and path.name.isdecimal():
            yield int(path.name), record


def _read(path: Path, model: type[_M]) -> _M | None:
    try:
        return model.model_validate_json(path.read_bytes())
    except (FileNotFoundError, ValidationError):
        return None


def _write(path: Path, content: BaseModel, *, durable: bool = False) -> None:
    temporary = path.with_suffix(".tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    fd = os.open(temporary, flags, _PRIVATE_FILE)
    with os.fdopen(fd, "w") as file:
        file.write(content.model_dump_json(exclude_defaults=True))
        if durable:
            file.flush()
            os.fsync(fd)
    temporary.rename(path)


def _sync(directory: Path) -> None:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(fd)
    os.close(fd)
