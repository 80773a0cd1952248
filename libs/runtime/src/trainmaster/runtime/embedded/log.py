"""Owns a server's log file: what it said since when, and that it does not grow."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

TURN_OVER_BYTES: Final = 8 * 2**20
_TAIL_BYTES: Final = 16 * 2**10


class ServerLog:
    """One log file, appended to by the server itself."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def appending(self) -> Generator[int]:
        """Open it for a process to write to; a large one is turned over first."""
        if self.size() > TURN_OVER_BYTES:
            self.path.replace(self.path.with_name(f"{self.path.name}.1"))
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
        descriptor = os.open(self.path, flags, 0o600)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def size(self) -> int:
        """Tell where the log ends now."""
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def said(self, *, since: int) -> tuple[str, ...]:
        """Read the last lines after a position; a log turned over is read whole."""
        size = self.size()
        if size == 0:
            return ()
        with self.path.open("rb") as log:
            log.seek(max(since if since <= size else 0, size - _TAIL_BYTES))
            return tuple(log.read().decode(errors="replace").splitlines())
