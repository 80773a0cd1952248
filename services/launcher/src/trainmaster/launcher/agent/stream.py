"""Streams what the ranks of one attempt write: output and metrics.

The files are the truth and offsets count their bytes, so that to say something twice
does no harm. While NATS is away nothing is read, and afterwards it goes on from there.
"""

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import nats.errors

from trainmaster.core import subjects
from trainmaster.core.errors import UnreachableError
from trainmaster.core.ids import JobKey
from trainmaster.core.messages import OutputChunk
from trainmaster.launcher.agent.disk import Disk
from trainmaster.launcher.agent.ended import TAIL_BYTES, last_lines
from trainmaster.launcher.agent.metrics import read_sample
from trainmaster.launcher.agent.ranks import METRICS_VARIABLE
from trainmaster.launcher.agent.tail import (
    PIECES_MAX,
    Follower,
    Piece,
    whole_characters,
    whole_lines,
)
from trainmaster.launcher.backends.model import AttemptKey, RankSpec
from trainmaster.runtime.bus import Bus
from trainmaster.runtime.clock import pause

POLL_SECONDS: Final = 0.08
_STORED_SECONDS: Final = 1.0
_SAVE_SECONDS: Final = 5.0
_DRAIN_SECONDS: Final = 2.0
_DRAIN_ROUNDS_MAX: Final = 32
"""What a rank left behind may write for ever; more than is ever behind is enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """One file of one rank, and how its pieces become messages."""

    follower: Follower
    subject: str
    messages: Callable[[Piece], list[bytes]]


class AttemptStream:
    """The files of the ranks of one attempt on this node."""

    def __init__(
        self, bus: Bus, disk: Disk, key: JobKey, attempt: AttemptKey, *, node: str
    ) -> None:
        self._bus = bus
        self._disk = disk
        self._key = key
        self._attempt = attempt
        self._node = node
        self._offsets = disk.offsets(attempt)
        self._sources: dict[int, tuple[_Source, _Source]] = {}
        self._turn = asyncio.Lock()
        self._saved_at = time.monotonic()

    def follow(self, spec: RankSpec) -> None:
        """Follow the files of a rank; again is a no-op."""
        rank = spec.key.rank
        if rank in self._sources:
            return
        uid = spec.user.uid if spec.user else os.geteuid()
        number = self._attempt.number
        metrics = Path(spec.environment[METRICS_VARIABLE])
        self._sources[rank] = (
            _Source(
                follower=Follower(
                    spec.log,
                    uid=uid,
                    offset=self._offsets.get(str(spec.log), 0),
                    cut=whole_characters,
                ),
                subject=subjects.output(self._key, number, rank),
                messages=self._output,
            ),
            _Source(
                follower=Follower(
                    metrics,
                    uid=uid,
                    offset=self._offsets.get(str(metrics), 0),
                    cut=whole_lines,
                ),
                subject=subjects.metric(self._key, number, rank),
                messages=_samples,
            ),
        )

    async def run(self) -> None:
        """Stream until cancelled."""
        while True:
            await pause(POLL_SECONDS)
            if self._bus.connected:
                everything = [s for pair in self._sources.values() for s in pair]
                while await self._pass_on(everything, final=False):
                    continue
            if time.monotonic() - self._saved_at > _SAVE_SECONDS:
                self._save()

    async def drain(self, rank: int) -> tuple[str, ...]:
        """Stream what a rank wrote before it ended; returns its last lines.

        A file system that does not answer must not keep the end from being reported.
        """
        sources = self._sources.get(rank)
        if sources is None:
            return ()
        try:
            async with asyncio.timeout(_DRAIN_SECONDS):
                tail = await asyncio.to_thread(
                    sources[0].follower.last_bytes, TAIL_BYTES
                )
                for _ in range(_DRAIN_ROUNDS_MAX if self._bus.connected else 0):
                    if not await self._pass_on(sources, final=True):
                        break
        except TimeoutError:
            return (f"(its output could not be read within {_DRAIN_SECONDS:g} s)",)
        return last_lines(tail)

    async def finish(self) -> None:
        """Stream what is left, which is more than nothing after an outage."""
        for rank in self._sources:
            await self.drain(rank)

    def close(self) -> None:
        """Let go of all files and keep how far they were streamed."""
        self._save()
        for pair in self._sources.values():
            for source in pair:
                source.follower.close()

    async def _pass_on(
        self, sources: list[_Source] | tuple[_Source, ...], *, final: bool
    ) -> bool:
        """Read all of these files once and publish; True if there is surely more."""
        async with self._turn:
            read = await asyncio.to_thread(_read_all, sources, final=final)
            for source, pieces in read:
                if not await self._publish(source, pieces):
                    return False
                source.follower.advance(pieces)
        return any(len(pieces) == PIECES_MAX for _, pieces in read)

    async def _publish(self, source: _Source, pieces: list[Piece]) -> bool:
        messages = [m for piece in pieces for m in source.messages(piece)]
        if not messages:
            return True
        *others, last = messages
        try:
            for message in others:
                await self._bus.client.publish(source.subject, message)
            # Only what is stored counts: a server that stops drops what it only heard.
            await self._bus.request(source.subject, last, seconds=_STORED_SECONDS)
        except (nats.errors.Error, UnreachableError):
            return False  # it is read again when NATS is back
        return True

    def _output(self, piece: Piece) -> list[bytes]:
        text = piece.data.decode(errors="replace")
        chunk = OutputChunk(offset=piece.offset, text=text, node=self._node)
        return [chunk.to_json()]

    def _save(self) -> None:
        self._saved_at = time.monotonic()
        offsets = {
            str(source.follower.path): source.follower.offset
            for pair in self._sources.values()
            for source in pair
        }
        if offsets != self._offsets:
            self._offsets = offsets
            self._disk.save_offsets(self._attempt, offsets)


def _read_all(
    sources: list[_Source] | tuple[_Source, ...], *, final: bool
) -> list[tuple[_Source, list[Piece]]]:
    read = ((source, source.follower.read(final=final)) for source in sources)
    return [(source, pieces) for source, pieces in read if pieces]


def _samples(piece: Piece) -> list[bytes]:
    samples = map(read_sample, piece.data.split(b"\n"))
    return [sample.to_json() for sample in samples if sample is not None]
