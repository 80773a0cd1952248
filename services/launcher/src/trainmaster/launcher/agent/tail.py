"""Follows one growing file, from a known offset, in pieces that can be read.

The file belongs to the job's user and may be anything: it is opened without following a
link and without waiting, and read only if it is a plain file of that user.
"""

import os
import stat
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PIECE_BYTES: Final = 32 * 1024
PIECES_MAX: Final = 16
"""Read at once, so that one talkative rank does not keep the others waiting."""
BEHIND_BYTES_MAX: Final = 8 * 2**20
"""What is further behind is left out of the stream; the file still has it."""
_CONTINUATION: Final = 0x80
_CHARACTER_BYTES_MAX: Final = 4

Cut = Callable[[bytes], int]
"""How many of these bytes can be read by themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Some bytes of a file and where they are in it."""

    offset: int
    data: bytes


class Follower:
    """Reads what is new; what was read counts once `advance` says that it was used."""

    def __init__(self, path: Path, *, uid: int, offset: int, cut: Cut) -> None:
        self.path = path
        self.offset = offset
        self._uid = uid
        self._cut = cut
        self._fd: int | None = None
        self._closed = False
        self._turn = threading.Lock()  # a reading thread outlives who waits for it

    def read(self, *, final: bool = False) -> list[Piece]:
        """Read what is new and complete; with `final` also what is not complete."""
        with self._turn:
            return self._read(final=final)

    def _read(self, *, final: bool) -> list[Piece]:
        fd = self._open()
        if fd is None:
            return []
        size = os.fstat(fd).st_size
        offset = self.offset if self.offset <= size else 0
        offset = max(offset, size - BEHIND_BYTES_MAX)
        pieces: list[Piece] = []
        while offset < size and len(pieces) < PIECES_MAX:
            data = os.pread(fd, PIECE_BYTES, offset)
            whole = self._cut(data)
            if final and not whole:
                whole = len(data)
            if not whole:
                break
            pieces.append(Piece(offset=offset, data=data[:whole]))
            offset += whole
        return pieces

    def advance(self, pieces: list[Piece]) -> None:
        """Go on behind these pieces the next time."""
        if pieces:
            self.offset = pieces[-1].offset + len(pieces[-1].data)

    def last_bytes(self, count: int) -> bytes:
        """Read the end of the file."""
        with self._turn:
            fd = self._open()
            if fd is None:
                return b""
            size = os.fstat(fd).st_size
            return os.pread(fd, count, max(0, size - count))

    def close(self) -> None:
        """Let go of the file for good."""
        with self._turn:
            self._closed = True
            if self._fd is not None:
                os.close(self._fd)
                self._fd = None

    def _open(self) -> int | None:
        if self._fd is None and not self._closed:
            self._fd = _open_plain(self.path, self._uid)
        return self._fd


def _open_plain(path: Path, uid: int) -> int | None:
    """Open a plain file of this user; None while there is none."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        fd = os.open(path, flags)
    except OSError:
        return None  # not there yet, or nothing we may look at
    status = os.fstat(fd)
    if stat.S_ISREG(status.st_mode) and status.st_uid == uid:
        return fd
    os.close(fd)
    return None


def whole_characters(data: bytes) -> int:
    """Leave an incomplete UTF-8 character at the end for the next time."""
    for back in range(1, min(_CHARACTER_BYTES_MAX, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 != _CONTINUATION:
            return len(data) - back if back < _length(byte) else len(data)
    return len(data)


def _length(lead: int) -> int:
    """How many bytes a character has that begins with this one."""
    for length, (mask, bits) in enumerate(
        ((0xE0, 0xC0), (0xF0, 0xE0), (0xF8, 0xF0)), start=2
    ):
        if lead & mask == bits:
            return length
    return 1


def whole_lines(data: bytes) -> int:
    """Leave an incomplete line for the next time, unless it is absurdly long."""
    whole = data.rfind(b"\n") + 1
    return len(data) if not whole and len(data) >= PIECE_BYTES else whole
