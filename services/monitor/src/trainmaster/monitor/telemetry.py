"""Listens to nodes and ranks, and states as facts what the policy is to know.

FastStream delivers; a handler only puts a message into a bounded queue. One worker
reads them in slices of a few milliseconds, so that a flood of output delays nothing but
itself. Nothing that arrives here can stop the loop: what is too much is dropped and
counted.
"""

import asyncio
import contextlib
import time
from dataclasses import dataclass
from typing import Final

from faststream.nats import NatsRouter
from nats.aio.msg import Msg
from pydantic import ValidationError

from trainmaster.core import subjects
from trainmaster.core.errors import UnreachableError
from trainmaster.core.messages import NodeHeartbeat
from trainmaster.monitor.board import Board
from trainmaster.monitor.counts import Counts
from trainmaster.monitor.ear import Ear
from trainmaster.monitor.hearing import Hearing
from trainmaster.monitor.history import History, Row
from trainmaster.monitor.inbox import Arrival, Inbox
from trainmaster.monitor.observed import HEARD, PROGRESS, NotFinite
from trainmaster.monitor.progress import ProgressEffect
from trainmaster.monitor.settings import (
    FLUSH_SECONDS,
    FORGET_NODE_SECONDS,
    LISTEN_AGAIN_SECONDS,
    QUEUE_BYTES_MAX,
    QUEUE_MESSAGES_MAX,
    SLICE_SECONDS,
)
from trainmaster.runtime.clock import pause, wall
from trainmaster.runtime.ingress import Manner, as_it_came, broker, running
from trainmaster.runtime.service import Env
from trainmaster.runtime.telemetry import logger

HEARTBEAT: Final = "heartbeat"
OUTPUT: Final = "output"
METRIC: Final = "metric"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What telemetry works with."""

    env: Env
    counts: Counts
    board: Board
    history: History
    effect: ProgressEffect


class Telemetry:
    """Runs beside the loop, leading or not: a standby is up to date at once."""

    def __init__(self, parts: Parts) -> None:
        self.hearing = Hearing()
        self.inbox = Inbox()
        self._parts = parts
        self._ear = Ear(
            board=parts.board,
            row=self._keep,
            not_finite=self._remark,
            malformed=lambda metric: self._malformed(METRIC if metric else OUTPUT),
        )
        self._not_finite: dict[str, NotFinite] = {}
        self._news = asyncio.Event()
        self._progress_at = 0.0
        self._log = logger("monitor")

    async def run(self) -> None:
        """Listen until cancelled, again and again while there is no server."""
        while True:
            try:
                await self._listen()
            except UnreachableError as error:
                self._log.warning("telemetry_unreachable", error=str(error))
                await pause(LISTEN_AGAIN_SECONDS)

    async def _listen(self) -> None:
        env = self._parts.env
        manner = Manner(lost=self.lost, back=self.back)
        made = broker(env.settings, env.metrics, manner)
        made.include_router(self.router())
        async with running(made, env.settings):
            self.back()
            try:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(self._work())
                    tasks.create_task(self._flush_for_ever())
            finally:
                self.lost()

    # ---------------------------------------------------------------------- arrivals

    def router(self) -> NatsRouter:
        """Say which subject is handled by what; results are never published."""
        router = NatsRouter()
        router.subscriber(subjects.heartbeats(), decoder=as_it_came, no_reply=True)(
            self.on_heartbeat
        )
        for family, handler in (("out", self.on_output), ("metric", self.on_metric)):
            router.subscriber(
                subjects.all_of(family),
                decoder=as_it_came,
                no_reply=True,
                pending_msgs_limit=QUEUE_MESSAGES_MAX,
                pending_bytes_limit=QUEUE_BYTES_MAX,
            )(handler)
        return router

    async def on_heartbeat(self, message: Msg) -> None:
        """Note that a node lives; never queued behind anything."""
        self._parts.counts.received.labels(HEARTBEAT).inc()
        key = subjects.parse_heartbeat(message.subject)
        try:
            said = NodeHeartbeat.from_json(message.data)
        except ValidationError:
            key, said = None, NodeHeartbeat()
        if key is None:
            self._malformed(HEARTBEAT)
        elif self.hearing.beat(key, said, time.monotonic()):
            self._news.set()

    async def on_output(self, message: Msg) -> None:
        """Queue a piece of a rank's output."""
        self._queue(OUTPUT, message)

    async def on_metric(self, message: Msg) -> None:
        """Queue what a rank reported at one step."""
        self._queue(METRIC, message)

    def _queue(self, kind: str, message: Msg) -> None:
        counts = self._parts.counts
        counts.received.labels(kind).inc()
        arrival = Arrival(
            subject=message.subject, body=message.data, metric=kind == METRIC
        )
        if not self.inbox.put(arrival):
            counts.dropped.labels(kind).inc()

    def _malformed(self, kind: str) -> None:
        self._parts.counts.malformed.labels(kind).inc()

    async def _work(self) -> None:
        """Read what arrived, and let others run after every slice."""
        slice_ends = time.monotonic() + SLICE_SECONDS
        while True:
            arrival = await self.inbox.get()
            for _ in self._ear.hear(arrival, wall()):
                if time.monotonic() > slice_ends:
                    await pause(0)
                    slice_ends = time.monotonic() + SLICE_SECONDS

    # ------------------------------------------------------------------------- facts

    @property
    def leading(self) -> bool:
        """Whether this replica decides, on a clock that has met the server's."""
        loop = self._parts.env.loop
        return loop is not None and loop.caught_up.is_set()

    def back(self) -> None:
        """Begin to listen, again: nobody was silent while we were away."""
        self.hearing.listen(time.monotonic())

    def lost(self) -> None:
        """Nothing can be heard now, so nothing follows from hearing nothing."""
        self.hearing.deaf = True

    def _keep(self, row: Row) -> None:
        if self.leading:
            self._parts.history.add(row)

    def _remark(self, seen: NotFinite) -> None:
        self._not_finite[seen.fact] = seen
        self._news.set()

    async def _flush_for_ever(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FLUSH_SECONDS):
                    await self._news.wait()
            self._news.clear()
            self.flush(time.monotonic())

    def flush(self, at: float) -> None:
        """State what is new; silence is told as well, by looking again."""
        loop, facts = self._parts.env.loop, self._parts.env.facts
        if loop is None or not self.leading:
            return
        if not self.hearing.deaf:
            facts.put(HEARD, self.hearing.view(loop.clock.now(), at))
        for name, seen in self._not_finite.items():
            facts.put(name, seen)
        self._not_finite.clear()
        if at - self._progress_at >= FLUSH_SECONDS:
            self._progress_at = at
            self._flush_progress()
            self.hearing.forget_before(at - FORGET_NODE_SECONDS)

    def _flush_progress(self) -> None:
        board, history = self._parts.board, self._parts.history
        changed, gone = board.take_changed(), board.take_gone()
        if not changed and not gone:
            return
        for key in gone:
            history.forget(key)
        for key in changed & board.newest.keys():
            history.note(key, board.newest[key])
        self._parts.effect.due |= changed | gone
        self._parts.env.facts.put(PROGRESS, board.snapshot())
