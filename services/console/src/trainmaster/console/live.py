"""Owns what is heard live: one subscription each, shared by all who ask.

Wait reasons and progress are last values: the stored ones are read at first and again
after each reconnect. Output is dealt out to followers, each with a bounded queue.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from nats.aio.msg import Msg
from pydantic import ValidationError

from trainmaster.console.output import Piece
from trainmaster.console.reasons import Now
from trainmaster.console.settings import BEHIND_BYTES_MAX, LOOK_SECONDS
from trainmaster.console.state import State
from trainmaster.core import subjects
from trainmaster.core.decision import Changed
from trainmaster.core.errors import UnreachableError
from trainmaster.core.ids import JobKey
from trainmaster.core.messages import OutputChunk, Progress, WaitReasons
from trainmaster.core.record import JobState
from trainmaster.runtime.clock import pause
from trainmaster.runtime.service import Env

_WAITING: Final = "tm.status.waiting.>"
_PROGRESS: Final = "tm.status.progress.>"
_OUTPUT: Final = "tm.out.>"
_WAITS: Final = frozenset({JobState.QUEUED, JobState.HELD})


class Status:
    """The newest wait reasons and progress of every job."""

    def __init__(self, env: Env) -> None:
        self._env = env
        self._waiting: dict[JobKey, WaitReasons] = {}
        self._progress: dict[JobKey, Progress] = {}
        self._again = asyncio.Event()

    def of(self, key: JobKey) -> Now:
        """Say what is known of a job now."""
        return Now(progress=self._progress.get(key), waiting=self._waiting.get(key))

    def want(self, state: State, changed: set[Changed] | None) -> None:
        """Forget why a job waited once it waits no more: its purge is not heard."""
        keys = self._waiting.keys() | self._progress.keys()
        if changed is not None:
            keys &= {key for _, key in changed if isinstance(key, JobKey)}
        for key in keys:
            view = state.jobs.get(key)
            if view is None:
                self._progress.pop(key, None)
            if view is None or view.job.state not in _WAITS:
                self._waiting.pop(key, None)

    async def run(self) -> None:
        """Nothing is left to do later."""
        await asyncio.Event().wait()

    async def listen(self) -> None:
        """Listen until cancelled."""
        bus = self._env.bus
        subscriptions = [
            await bus.subscribe(_WAITING, self._receive),
            await bus.subscribe(_PROGRESS, self._receive),
        ]
        bus.on_reconnect(self._again.set)
        try:
            while True:
                self._again.clear()
                try:
                    await self._read_stored()
                except UnreachableError:
                    await pause(LOOK_SECONDS)  # a lost bus is the loop's to report
                else:
                    await self._again.wait()
        finally:
            bus.forget(self._again.set)
            for subscription in subscriptions:
                await subscription.unsubscribe()

    async def _read_stored(self) -> None:
        for subject in (_WAITING, _PROGRESS):
            async for raw in self._env.log.last_values(subjects.STATUS, subject):
                self._take(raw.subject, raw.body)

    async def _receive(self, message: Msg) -> None:
        self._take(message.subject, message.data)

    def _take(self, subject: str, body: bytes) -> None:
        try:
            if (key := subjects.parse_waiting(subject)) is not None:
                self._waiting[key] = WaitReasons.from_json(body)
            elif (key := subjects.parse_progress(subject)) is not None:
                self._progress[key] = Progress.from_json(body)
        except ValidationError:
            self._env.metrics.undecodable.inc()


@dataclass(slots=True)
class Queue:
    """Output on its way to one follower."""

    wake: asyncio.Event
    attempt: int | None = None
    rank: int | None = None
    gap: bool = False
    """Something may have been missed: read the stream first."""
    skipped: dict[tuple[int, int], int] = field(
        default_factory=dict[tuple[int, int], int]
    )
    _pieces: deque[Piece] = field(default_factory=deque[Piece])
    _bytes: int = 0

    def offer(self, piece: Piece) -> None:
        """Take a piece in, or skip it when the follower is too far behind."""
        if self.attempt not in {None, piece.attempt}:
            return
        if self.rank not in {None, piece.rank}:
            return
        who = piece.attempt, piece.rank
        full = self._pieces and self._bytes + piece.bytes > BEHIND_BYTES_MAX
        if full or who in self.skipped:
            self.skipped[who] = self.skipped.get(who, 0) + piece.bytes
        else:
            self._pieces.append(piece)
            self._bytes += piece.bytes
        self.wake.set()

    def take(self) -> list[Piece]:
        """Hand out what is there, and say in it how much is missing."""
        missing = [
            Piece(attempt=attempt, rank=rank, skipped=count)
            for (attempt, rank), count in self.skipped.items()
        ]
        taken = [*self._pieces, *missing]
        self._pieces.clear()
        self.skipped.clear()
        self._bytes = 0
        return taken


class Outlet:
    """Deals the ranks' output out to whoever follows it."""

    def __init__(self, env: Env) -> None:
        self._env = env
        self._queues: dict[JobKey, list[Queue]] = {}
        self._stored = 0
        self.heard = 0
        """Up to which sequence of OUTPUT all queues without a gap were served."""

    @contextmanager
    def follow(self, key: JobKey, queue: Queue) -> Generator[None]:
        """Have a job's output put into a queue."""
        self._queues.setdefault(key, []).append(queue)
        try:
            yield
        finally:
            left = self._queues[key]
            left.remove(queue)
            if not left:
                del self._queues[key]

    async def listen(self) -> None:
        """Listen until cancelled."""
        bus = self._env.bus
        subscription = await bus.subscribe(_OUTPUT, self._receive)
        bus.on_reconnect(self._missed)
        self._missed()
        try:
            while True:
                await pause(LOOK_SECONDS)
                if self._queues and bus.connected:
                    with contextlib.suppress(UnreachableError):  # asked again later
                        await self._look()
        finally:
            bus.forget(self._missed)
            await subscription.unsubscribe()

    async def _look(self) -> None:
        facts = await self._env.log.facts(subjects.OUTPUT)
        # What was stored a while ago was also heard by now.
        self.heard, self._stored = self._stored, facts.last_seq

    def _missed(self) -> None:
        for queues in self._queues.values():
            for queue in queues:
                queue.gap = True
                queue.wake.set()

    async def _receive(self, message: Msg) -> None:
        stream = subjects.parse_rank_stream(message.subject)
        queues = None if stream is None else self._queues.get(stream.key)
        if stream is None or not queues:
            return
        try:
            chunk = OutputChunk.from_json(message.data)
        except ValidationError:
            self._env.metrics.undecodable.inc()
            return
        piece = Piece.of(stream, chunk)
        for queue in queues:
            queue.offer(piece)
