"""Decides what of a rank's output is new, and how it reads as text. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from trainmaster.core.messages import OutputChunk
from trainmaster.core.subjects import RankStream

_UNREADABLE: Final = "\ufffd"


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A piece of one rank's output; with `skipped`, how many bytes are missing."""

    attempt: int
    rank: int
    offset: int = 0
    text: str = ""
    skipped: int = 0

    @classmethod
    def of(cls, stream: RankStream, chunk: OutputChunk) -> Self:
        """Take a chunk from the bus."""
        return cls(
            attempt=stream.attempt,
            rank=stream.rank,
            offset=chunk.offset,
            text=chunk.text,
        )

    @property
    def bytes(self) -> int:
        """Count the bytes it was in the file, or fewer.

        What was no text is one character now, whatever it was; to count it as one byte
        can repeat a few bytes that came twice, but never loses any.
        """
        return len(self.text.encode()) - 2 * self.text.count(_UNREADABLE)

    def told(self) -> dict[str, Any]:
        """Tell it to a follower."""
        text = self.text
        line: dict[str, Any] = {
            "rank": self.rank,
            "attempt": self.attempt,
            "offset": self.offset,
            "text": text,
        }
        if self.skipped:
            line["skipped_bytes"] = self.skipped
            line["text"] = (
                f"\n[{self.skipped:,} bytes skipped: this reader is too slow; "
                "the file has them]\n"
            )
        return line


class Seen:
    """How far the output of each rank was handed on."""

    def __init__(self) -> None:
        self._ends: dict[tuple[int, int], int] = {}

    def new(self, piece: Piece) -> Iterator[Piece]:
        """Yield the piece, the rest of it, or nothing."""
        if piece.skipped:
            yield piece
            return
        who = piece.attempt, piece.rank
        end = self._ends.get(who, 0)
        over = end - piece.offset
        if over > 0 and over >= piece.bytes:
            return
        self._ends[who] = piece.offset + piece.bytes
        if over > 0:
            rest = piece.text.encode()[over:].decode(errors="ignore")
            piece = replace(piece, offset=end, text=rest)
        yield piece


class Lines:
    """Writes pieces as text; with several ranks, whole lines that name theirs."""

    def __init__(self, *, named: bool) -> None:
        self._named = named
        self._rests: dict[tuple[int, int], str] = {}

    def add(self, piece: Piece) -> str:
        """Write what can be written now."""
        if not self._named:
            return piece.text
        who = piece.attempt, piece.rank
        *lines, rest = (self._rests.get(who, "") + piece.text).split("\n")
        self._rests[who] = rest
        return "".join(f"[{piece.rank}] {line}\n" for line in lines)

    def end(self) -> str:
        """Write what never became a whole line."""
        rests = sorted(self._rests.items())
        return "".join(f"[{rank}] {rest}\n" for (_, rank), rest in rests if rest)
