"""Owns how connected ranks add up vectors and exchange small values over TCP.

Rank 0 is the middle of a star: it receives from every other rank in rank order,
adds in that order and sends the result back. The order never depends on who was
faster, so the same run gives the same bits.
"""

import json
import socket
import struct
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from errors import CannotGoOnError
from numpy.typing import NDArray

FRAME: Final = struct.Struct("!4sIQ")  # kind, sequence, bytes that follow
SUM: Final = b"sum\0"
JSON: Final = b"json"

JSON_BYTES_MAX: Final = 1 << 20


class CollectiveError(CannotGoOnError):
    """The ranks cannot work together (any longer)."""


class PeerLostError(CollectiveError):
    """Another rank went away or stopped answering."""

    def __init__(self, *, rank: int, peer: int, why: str) -> None:
        """Say who lost whom."""
        super().__init__(
            f"rank {rank} lost rank {peer}: {why}; "
            "the log of the rank that ended first names the cause",
        )


class OutOfStepError(CollectiveError):
    """Another rank is at a different point of the program."""

    def __init__(self, *, rank: int, peer: int, sent: str, expected: str) -> None:
        """Say what came instead of what."""
        super().__init__(
            f"rank {rank} expected {expected} from rank {peer} and got {sent}; "
            "start all ranks with the same program and arguments",
        )


class Collective:
    """Connected ranks; every method must be called by all of them, in one order."""

    def __init__(
        self, rank: int, world_size: int, links: Mapping[int, socket.socket]
    ) -> None:
        """Rank 0 has a link to each other rank; the others have one, to rank 0."""
        self.rank = rank
        self.world_size = world_size
        self._links = dict(sorted(links.items()))
        self._sequence = 0

    def all_reduce_sum(self, vector: NDArray[np.float32]) -> None:
        """Replace the vector by the sum over all ranks, added in rank order."""
        self._sequence += 1
        raw = vector.data.cast("B")
        if self.rank != 0:
            self._send(0, SUM, raw)
            self._receive_into(0, raw)
            return
        other = np.empty_like(vector)
        for peer in self._links:
            self._receive_into(peer, other.data.cast("B"))
            vector += other
        for peer in self._links:
            self._send(peer, SUM, raw)

    def all_gather(self, value: Any) -> list[Any]:
        """Give every rank the JSON values of all ranks, in rank order."""
        self._sequence += 1
        if self.rank != 0:
            self._send(0, JSON, memoryview(json.dumps(value).encode()))
            return self._receive_json(0)
        values = [value, *(self._receive_json(peer) for peer in self._links)]
        everything = memoryview(json.dumps(values).encode())
        for peer in self._links:
            self._send(peer, JSON, everything)
        return values

    def barrier(self) -> None:
        """Wait until all ranks are here."""
        self.all_gather(None)

    def close(self) -> None:
        """Hang up."""
        for link in self._links.values():
            link.close()

    def _send(self, peer: int, kind: bytes, body: memoryview) -> None:
        link = self._links[peer]
        try:
            link.sendall(FRAME.pack(kind, self._sequence, body.nbytes))
            link.sendall(body)
        except OSError as error:
            raise self._lost(peer, error) from error

    def _receive_into(self, peer: int, body: memoryview) -> None:
        self._expect(peer, SUM, body.nbytes)
        self._fill(peer, body)

    def _receive_json(self, peer: int) -> Any:
        body = bytearray(self._expect(peer, JSON, None))
        self._fill(peer, memoryview(body))
        return json.loads(body)

    def _expect(self, peer: int, kind: bytes, size: int | None) -> int:
        head = bytearray(FRAME.size)
        self._fill(peer, memoryview(head))
        sent = FRAME.unpack(head)
        wanted = (kind, self._sequence, sent[2] if size is None else size)
        if sent != wanted or (kind == JSON and sent[2] > JSON_BYTES_MAX):
            raise OutOfStepError(
                rank=self.rank,
                peer=peer,
                sent=_frame_text(*sent),
                expected=_frame_text(*wanted),
            )
        return sent[2]

    def _fill(self, peer: int, body: memoryview) -> None:
        try:
            receive_exactly(self._links[peer], body)
        except OSError as error:
            raise self._lost(peer, error) from error

    def _lost(self, peer: int, error: OSError) -> PeerLostError:
        silent = isinstance(error, TimeoutError)
        why = "it is silent, hung or stopped" if silent else str(error)
        return PeerLostError(rank=self.rank, peer=peer, why=why)


def _frame_text(kind: bytes, sequence: int, size: int) -> str:
    name = kind.rstrip(b"\0").decode(errors="replace")
    return f"exchange {sequence} ({name}, {size:,} bytes)"


def receive_exactly(link: socket.socket, body: memoryview) -> None:
    """Fill the buffer, or raise when the other side hung up."""
    done = 0
    while done < body.nbytes:
        count = link.recv_into(body[done:])
        if count == 0:
            raise ConnectionResetError("it closed the connection")
        done += count
