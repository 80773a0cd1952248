"""Hashes files, however large, until told to stop."""

from pathlib import Path
from threading import Event
from typing import Final

from blake3 import blake3

from trainmaster.core.errors import TransientError

_CHUNK_BYTES: Final = 2**20


class StoppedError(TransientError):
    """The agent is ending; what was asked is asked again of the next one."""

    def __init__(self, *, path: Path) -> None:
        super().__init__(f"hashing {path} was given up, because the agent ends")


def hash_file(path: Path, *, stopped: Event | None = None) -> str:
    """Hash a file's content; raises OSError, and StoppedError once `stopped` is set."""
    content = blake3()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            if stopped is not None and stopped.is_set():
                raise StoppedError(path=path)
            content.update(chunk)
    return content.hexdigest()
