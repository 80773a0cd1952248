"""Cuts the output of ranks into whole lines, whatever pieces it arrives in.

Offsets count bytes of the rank's file. What was seen is not shown again; after a gap
the line it tore is dropped. Memory is bounded per line and in the number of ranks.
"""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from trainmaster.core.messages import OutputChunk
from trainmaster.monitor.settings import LINE_CHARS_MAX, STREAMS_MAX

K = TypeVar("K")


@dataclass(slots=True)
class Stream:
    """One rank's output so far: where it ends, and the line that is not whole.

    `declares`: the rank writes a metrics file, so its lines need not be read.
    """

    start: int = -1
    end: int = 0
    partial: str = ""
    declares: bool = False

    def lines(self, chunk: OutputChunk) -> Iterator[str]:
        """Give the lines that a chunk makes whole."""
        length = len(chunk.text.encode(errors="replace"))
        if not self._follows(chunk.offset, length):
            return
        self.start, self.end = chunk.offset, chunk.offset + length
        *whole, rest = (self.partial + chunk.text).replace("\r", "\n").split("\n")
        self.partial = rest[:LINE_CHARS_MAX]
        for line in whole:
            yield line[:LINE_CHARS_MAX]

    def _follows(self, offset: int, length: int) -> bool:
        """Tell whether a chunk brings something new; forget a torn line.

        `end` may lie too high, never too low: bytes that are no text became longer.
        """
        if self.start < offset <= self.end:
            return True
        if offset > 0 and offset + length <= self.end:
            return False  # an agent that was restarted says it again
        self.partial = ""  # a gap, or the file began anew
        return True


@dataclass(slots=True)
class Streams(Generic[K]):
    """The output of all ranks; who was silent the longest is forgotten first."""

    _streams: OrderedDict[K, Stream] = field(default_factory=OrderedDict[K, Stream])

    def of(self, key: K) -> Stream:
        """Find or begin the output of one rank."""
        stream = self._streams.setdefault(key, Stream())
        self._streams.move_to_end(key)
        if len(self._streams) > STREAMS_MAX:
            self._streams.popitem(last=False)
        return stream
