"""Appending to the log and asking it: the only code that publishes events.

An append is one atomic batch with compare-and-set on every chain it touches. One stale
chain refuses the whole batch without naming it, so the groups are then tried one by one
at once. A time-out is *unknown*, not failed: read on before deciding again.
"""

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from nats.aio.msg import Msg

from trainmaster.core import subjects
from trainmaster.core.decision import Group, Write
from trainmaster.core.envelope import Entry, Raw, Undecodable, decode, headers
from trainmaster.core.errors import NotFoundError, UnreachableError
from trainmaster.core.ids import EventId, event_id
from trainmaster.runtime.bus import Bus
from trainmaster.runtime.clock import wall
from trainmaster.runtime.heads import Heads
from trainmaster.runtime.telemetry import trace_parent

BATCH_MESSAGES_MAX: Final = 1000
_APPEND_SECONDS: Final = 5.0
_HISTORY_BATCH: Final = 256
_EXPECTED: Final = "Nats-Expected-Last-Subject-Sequence"
_Outgoing = tuple[str, dict[str, str], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamFacts:
    """What a stream says of itself now."""

    created: str
    first_seq: int
    last_seq: int
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """What became of a decision's groups: their stored sequence, or None."""

    seqs: tuple[int | None, ...] = ()
    refused: int = 0
    unknown: bool = False
    last: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def whole(self) -> bool:
        """Every group is stored."""
        return not self.unknown and None not in self.seqs


class Log:
    """One service's way to the streams."""

    def __init__(self, bus: Bus, *, source: str, epoch: int) -> None:
        self.bus = bus
        self._source = source
        self._epoch = epoch
        self._batches = 0

    async def append(self, groups: Sequence[Group], heads: Heads) -> Appended:
        """Store groups, each whole or not at all; see Appended for what became."""
        seqs: list[int | None] = [None] * len(groups)
        refused, unknown, last = 0, False, dict[str, int]()
        for stream, chunk in _chunks(groups):
            now = wall().isoformat()
            outgoing = [self._encode(groups[i], heads, now) for i in chunk]
            results = await self._store(outgoing)
            for index, result in zip(chunk, results, strict=True):
                if isinstance(result, int):
                    seqs[index] = result
                    last[stream] = max(last.get(stream, 0), result)
                else:
                    refused += result == "refused"
                    unknown |= result == "unknown"
        return Appended(seqs=tuple(seqs), refused=refused, unknown=unknown, last=last)

    async def say(self, write: Write) -> int:
        """Append one fact that needs no compare-and-set; returns its sequence."""
        result = await self._store_group(
            self._encode((write,), Heads(), wall().isoformat())
        )
        if isinstance(result, int):
            return result
        raise UnreachableError(
            what=f"append of {type(write.event).__name__}",
            address=self.bus.address.url,
            hint=f"the outcome is {result}; it is tried again",
        )

    async def facts(self, stream: str) -> StreamFacts:
        """Ask a stream for its extent. Raises NotFoundError without the stream."""
        answer = await self.bus.ask_api(f"STREAM.INFO.{stream}", {})
        if "error" in answer:
            raise NotFoundError(
                kind="stream",
                name=stream,
                hint="`tm up` declares streams; elsewhere run the provisioner",
            )
        state = answer["state"]
        return StreamFacts(
            created=answer["created"],
            first_seq=state["first_seq"],
            last_seq=state["last_seq"],
            at=datetime.fromisoformat(answer["ts"]),
        )

    async def last(self, stream: str, filters: Sequence[str]) -> int:
        """Find the highest sequence on any of these subjects; 0 for none."""
        found = [await self.get(stream, {"last_by_subj": f}) for f in filters]
        return max((raw.seq for raw in found if raw is not None), default=0)

    async def get(self, stream: str, question: dict[str, Any]) -> Raw | None:
        """Get one message directly: by `seq`, or by `last_by_subj`."""
        answer = await self.bus.request(
            f"$JS.API.DIRECT.GET.{stream}",
            json.dumps(question).encode(),
            seconds=_APPEND_SECONDS,
        )
        return _raw_of_direct(answer)

    async def history(
        self, stream: str, subject: str, *, after: int = 0
    ) -> AsyncIterator[Raw]:
        """Read the stored messages of one subject filter, oldest first."""
        while True:
            count = 0
            question = {
                "seq": after + 1,
                "batch": _HISTORY_BATCH,
                "next_by_subj": subject,
            }
            async for raw in self._many(stream, question):
                count, after = count + 1, raw.seq
                yield raw
            if count < _HISTORY_BATCH:
                return

    async def entries(self, stream: str, subject: str) -> list[Entry | Undecodable]:
        """Read and decode the stored events of one subject filter."""
        return [decode(raw) async for raw in self.history(stream, subject)]

    async def last_values(self, stream: str, subject: str) -> AsyncIterator[Raw]:
        """Read the newest message of every subject below a filter."""
        # `last value` streams keep one message per subject, so history is just that.
        async for raw in self.history(stream, subject):
            yield raw

    async def _many(self, stream: str, question: dict[str, Any]) -> AsyncIterator[Raw]:
        client = self.bus.client
        inbox = client.new_inbox()
        subscription = await self.bus.subscribe(inbox)
        try:
            await client.publish(
                f"$JS.API.DIRECT.GET.{stream}",
                json.dumps(question).encode(),
                reply=inbox,
            )
            while True:
                message = await subscription.next_msg(timeout=_APPEND_SECONDS)
                raw = _raw_of_direct(message)
                if raw is None:
                    return
                yield raw
        except TimeoutError as error:
            raise UnreachableError(
                what=f"stream {stream}",
                address=self.bus.address.url,
                hint="is the server up?",
            ) from error
        finally:
            await subscription.unsubscribe()

    def _encode(self, group: Group, heads: Heads, time: str) -> list[_Outgoing]:
        return [self._encode_write(write, heads, time) for write in group]

    def _encode_write(self, write: Write, heads: Heads, time: str) -> _Outgoing:
        event = write.event
        scope, head = heads.of(event.family, write.key)
        subject = subjects.event_subject(write.key, event)
        id_ = event_id(
            epoch=self._epoch,
            scope=scope or subject,
            head=head.id,
            kind=event.kind,
            cause=write.cause,
        )
        attributes = headers(
            event, id_=id_, source=self._source, subject=subject, time=time
        )
        attributes["Nats-Msg-Id"] = id_
        attributes["traceparent"] = trace_parent(write.key, id_)
        if scope:
            attributes[_EXPECTED] = str(head.seq)
            attributes[f"{_EXPECTED}-Subject"] = scope
        return subject, attributes, event.to_json()

    async def _store(self, groups: list[list[_Outgoing]]) -> list[int | str]:
        if len(groups) == 1:
            return [await self._store_group(groups[0])]
        together = [message for group in groups for message in group]
        result = await self._store_group(together)
        if isinstance(result, int):
            return [result] * len(groups)
        if result == "unknown":
            return ["unknown"] * len(groups)
        return list(await asyncio.gather(*(self._store_group(g) for g in groups)))

    async def _store_group(self, messages: list[_Outgoing]) -> int | str:
        """Store messages as one: their last sequence, `refused` or `unknown`."""
        try:
            if len(messages) == 1:
                answer = await self._publish(messages[0])
            else:
                answer = await self._publish_batch(messages)
        except UnreachableError:
            return "unknown"
        if "error" in answer:
            return "refused"
        expected = int(messages[-1][1].get(_EXPECTED, "0"))
        if answer.get("duplicate") and answer["seq"] <= expected:
            return "refused"  # the id was used long ago: not this decision
        return int(answer["seq"])

    async def _publish(self, message: _Outgoing) -> dict[str, Any]:
        subject, attributes, body = message
        answer = await self.bus.request(
            subject, body, seconds=_APPEND_SECONDS, headers=attributes
        )
        return _answer(answer)

    async def _publish_batch(self, messages: list[_Outgoing]) -> dict[str, Any]:
        """Store all or nothing: the first message opens the batch, the last commits."""
        self._batches += 1
        name = f"{self.bus.client.new_inbox()[-16:]}{self._batches}"
        count = len(messages)
        for number, (subject, attributes, body) in enumerate(messages, 1):
            # A copy: a refused group is published again, outside of this batch.
            batched = {
                **attributes,
                "Nats-Batch-Id": name,
                "Nats-Batch-Sequence": str(number),
            }
            if number == count:
                batched["Nats-Batch-Commit"] = "1"
            if number in {1, count}:
                answer = await self._publish((subject, batched, body))
                if "error" in answer:
                    return answer
            else:
                await self.bus.client.publish(subject, body, headers=batched)
        return answer  # pyright: ignore[reportPossiblyUnboundVariable] count > 1


def _chunks(groups: Sequence[Group]) -> list[tuple[str, list[int]]]:
    """Deal groups into batches: one stream each, bounded, one transition a chain."""
    by_stream: dict[str, list[int]] = defaultdict(list)
    for index, group in enumerate(groups):
        by_stream[subjects.STREAM_OF_FAMILY[group[0].event.family]].append(index)
    chunks: list[tuple[str, list[int]]] = []
    for stream, indexes in by_stream.items():
        size = BATCH_MESSAGES_MAX
        for index in indexes:
            size += len(groups[index])
            if size > BATCH_MESSAGES_MAX:
                chunks.append((stream, []))
                size = len(groups[index])
            chunks[-1][1].append(index)
    return chunks


def _answer(message: Msg) -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(message.data) if message.data else {}
    return decoded


def _raw_of_direct(message: Msg) -> Raw | None:
    """Read a direct-get answer; None for `no message` and for `end of batch`."""
    found = message.headers or {}
    if "Nats-Sequence" not in found or not found.get("Nats-Subject"):
        return None
    return Raw(
        stream=found["Nats-Stream"],
        seq=int(found["Nats-Sequence"]),
        time=datetime.fromisoformat(found["Nats-Time-Stamp"]),
        id=EventId(found.get("ce-id", "")),
        subject=found["Nats-Subject"],
        body=message.data,
    )
