"""A JetStream server small enough to be driven by a seed.

It keeps streams in memory and treats an append as the real one does: an atomic batch is
stored whole or refused whole, the check looks at the state before the batch, an id is
accepted once. The real `Log` runs on top, so its encoding and retries are exercised.
"""

import json
import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from trainmaster.core import subjects
from trainmaster.core.envelope import Raw
from trainmaster.core.errors import UnreachableError
from trainmaster.core.ids import EventId
from trainmaster.runtime.bus import BusAddress

_BEGINNING: Final = datetime(2026, 1, 1, tzinfo=UTC)
_EXPECTED: Final = "Nats-Expected-Last-Subject-Sequence"


@dataclass(frozen=True, slots=True)
class Reply:
    """What a request comes back with."""

    data: bytes


@dataclass(slots=True)
class _Message:
    subject: str
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class SimServer:
    """Streams on virtual time."""

    now: datetime = _BEGINNING
    streams: dict[str, list[Raw]] = field(
        default_factory=lambda: defaultdict[str, list[Raw]](list)
    )
    purged: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])
    """What nobody can read any more; it stays in `streams` for judging."""
    _ids: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    _heads: dict[tuple[str, str], int] = field(
        default_factory=dict[tuple[str, str], int]
    )

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now += timedelta(seconds=seconds)

    def read(self, stream: str, after: int, hears: tuple[str, ...]) -> Iterator[Raw]:
        """Yield the stored messages behind a sequence that are on heard subjects."""
        stems = tuple(subject.removesuffix(">") for subject in hears)
        for raw in self.streams[stream][after:]:
            if raw.subject.startswith(stems) and (stream, raw.seq) not in self.purged:
                yield raw

    def last(self, stream: str, hears: tuple[str, ...]) -> int:
        """Find the highest sequence on a heard subject."""
        stems = tuple(subject.removesuffix(">") for subject in hears)
        for raw in reversed(self.streams[stream]):
            if raw.subject.startswith(stems) and (stream, raw.seq) not in self.purged:
                return raw.seq
        return 0

    def purge(self, stream: str, hears: tuple[str, ...], *, below: int) -> None:
        """Take what is on these subjects, below a sequence, out of sight."""
        for raw in tuple(self.read(stream, 0, hears)):
            if raw.seq < below:
                self.purged.add((stream, raw.seq))

    def store(self, batch: list[_Message]) -> dict[str, Any]:
        """Store all of a batch, or nothing."""
        stream = subjects.STREAM_OF_FAMILY[batch[0].subject.split(".")[1]]
        for message in batch:
            known = self._ids.get((stream, message.headers["Nats-Msg-Id"]))
            if known is not None and len(batch) == 1:
                return {"seq": known, "duplicate": True}
            if known is not None or not self._fresh(stream, message):
                return {"error": {"err_code": 10071}}
        for message in batch:
            seq = self._keep(stream, message)
        return {"seq": seq}  # pyright: ignore[reportPossiblyUnboundVariable]

    def _fresh(self, stream: str, message: _Message) -> bool:
        scope = message.headers.get(f"{_EXPECTED}-Subject")
        if scope is None:
            return True
        stem = scope.removesuffix(">")
        return self._heads.get((stream, stem), 0) == int(message.headers[_EXPECTED])

    def _keep(self, stream: str, message: _Message) -> int:
        kept = self.streams[stream]
        seq = len(kept) + 1
        kept.append(
            Raw(
                stream=stream,
                seq=seq,
                time=self.now,
                id=EventId(message.headers["ce-id"]),
                subject=message.subject,
                body=message.body,
            )
        )
        self._ids[stream, message.headers["Nats-Msg-Id"]] = seq
        parsed = subjects.parse(message.subject)
        if parsed is not None:
            scope = subjects.scope(parsed.family, parsed.key)
            self._heads[stream, scope.removesuffix(">")] = seq
        return seq


class SimBus:
    """One client's connection, which may lose a request or its answer."""

    def __init__(self, server: SimServer, chance: random.Random) -> None:
        self.address = BusAddress(url="sim", user="sim", password="")
        self.client = self
        self.loss = 0.0
        self._server = server
        self._chance = chance
        self._open: dict[str, list[_Message]] = {}
        self._inboxes = 0

    def new_inbox(self) -> str:
        """Name an inbox; unique per connection, as batches are named after it."""
        self._inboxes += 1
        return f"inbox{self._inboxes:011d}"

    async def publish(
        self, subject: str, body: bytes, *, headers: dict[str, str]
    ) -> None:
        """Add to an open batch."""
        self._open[headers["Nats-Batch-Id"]].append(_Message(subject, headers, body))

    async def request(
        self,
        subject: str,
        body: bytes,
        *,
        seconds: float,
        headers: dict[str, str] | None = None,
    ) -> Reply:
        """Open a batch, commit one, or store a single message."""
        attributes = dict(headers or {})
        message = _Message(subject, attributes, body)
        batch = attributes.get("Nats-Batch-Id")
        if batch is not None and attributes["Nats-Batch-Sequence"] == "1":
            self._open[batch] = [message]
            return Reply(b"")
        if self._chance.random() < self.loss:
            raise self._lost(seconds)
        answer = self._server.store([*self._open.pop(batch or "", []), message])
        if self._chance.random() < self.loss:
            raise self._lost(seconds)
        return Reply(json.dumps(answer).encode())

    def _lost(self, seconds: float) -> UnreachableError:
        return UnreachableError(
            what="sim", address="sim", hint=f"no answer within {seconds:g} s"
        )
