"""Decides what of a rank's output is new, when a stream had to begin anew. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from trainmaster.client.shapes import LogChunk


@dataclass(slots=True)
class Unseen:
    """Remembers to which byte each rank's output was handed on."""

    _ends: dict[tuple[int, int], int] = field(
        default_factory=dict[tuple[int, int], int]
    )

    def part_of(self, chunk: LogChunk) -> Iterator[LogChunk]:
        """Yield the chunk, the rest of it, or nothing."""
        if chunk.get("skipped_bytes"):  # the server says that something is missing
            yield chunk
            return
        who = chunk["attempt"], chunk["rank"]
        encoded = chunk["text"].encode()
        over = self._ends.get(who, 0) - chunk["offset"]
        if over > 0 and over >= len(encoded):
            return
        self._ends[who] = chunk["offset"] + len(encoded)
        if over > 0:
            chunk["text"] = encoded[over:].decode(errors="ignore")
            chunk["offset"] += over
        yield chunk
