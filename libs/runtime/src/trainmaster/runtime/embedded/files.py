"""Owns how small facts are kept: private, whole or not at all, found again."""

import fcntl
import json
import os
import secrets
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypedDict, cast

from trainmaster.runtime.embedded.errors import ServerPlaceError, next_step
from trainmaster.runtime.embedded.process import Identity

PASSWORD_BYTES: Final = 24
_DIRECTORY_MODE, _FILE_MODE = 0o700, 0o600


def private_directory(path: Path) -> Path:
    """Make a directory only its owner may enter; one that exists is left as it is."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=_DIRECTORY_MODE, exist_ok=True)
    except OSError as error:
        raise _unusable(path, error) from error
    return path


def write_private(path: Path, text: str) -> None:
    """Replace a file by a 0600 one; a crash or power cut leaves the old or the new."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with open(draft, "x", opener=_private_opener) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise _unusable(path, error) from error


def _private_opener(path: str, flags: int) -> int:
    return os.open(path, flags, _FILE_MODE)


def _unusable(path: Path, error: OSError) -> ServerPlaceError:
    why = error.strerror or str(error)
    return ServerPlaceError(
        server="an embedded server",
        place=path,
        why=why,
        hint=next_step([why], path.parent),
    )


def read_kept(path: Path) -> str | None:
    """Read a kept fact; None when there is none."""
    try:
        return path.read_text().strip() or None
    except FileNotFoundError:
        return None


def kept_password(path: Path) -> str:
    """Read the password kept in a file, or draw one and keep it there."""
    kept = read_kept(path)
    if kept is None:
        kept = secrets.token_urlsafe(PASSWORD_BYTES)
        private_directory(path.parent)
        write_private(path, f"{kept}\n")
    return kept


class _Record(TypedDict):
    pid: int
    start_ticks: int
    boot_id: str


def write_pid(path: Path, process: Identity) -> None:
    """Keep which process a server is."""
    write_private(path, json.dumps(asdict(process)) + "\n")


def read_pid(path: Path) -> Identity | None:
    """Read which process a server was; None when that is not known."""
    kept = read_kept(path)
    if kept is None:
        return None
    try:
        record = cast("_Record", json.loads(kept))
        return Identity(
            pid=int(record["pid"]),
            start_ticks=int(record["start_ticks"]),
            boot_id=str(record["boot_id"]),
        )
    except (ValueError, TypeError, KeyError):
        return None  # damaged, or another program's: the lock still protects us


class Lock:
    """An exclusive right to a directory, which child processes can inherit.

    The lock belongs to the open file: it ends when the last process that has inherited
    it is gone. Not promised: a lock across hosts on every network file system.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    @classmethod
    def attempt(cls, path: Path) -> Self | None:
        """Take the lock, or return None when someone has it."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, _FILE_MODE)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if isinstance(error, BlockingIOError):
                return None
            raise
        return cls(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let go; whoever inherited it goes on holding it."""
        os.close(self.descriptor)
