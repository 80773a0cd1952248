"""Reading the log in order: standing pulls with credits, heartbeats, no acks.

One consumer of one fixed name per service and stream; opening it deletes and creates
it, so a position is only ever where the service says it is. A gap, a deleted consumer,
silence or a reconnect reopens it behind the last entry that was handed out.
"""

import asyncio
import json
import time
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from trainmaster.core.envelope import Raw
from trainmaster.core.errors import LogLostError, UnreachableError
from trainmaster.core.ids import EventId
from trainmaster.runtime.log import Log

_CREDITS: Final = 500
_EXPIRES_SECONDS: Final = 30.0
_HEARTBEAT_SECONDS: Final = 2.5
_SILENCE_SECONDS: Final = 6.0
_INACTIVE_SECONDS: Final = 60
_NANOSECONDS: Final = 1_000_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_STATUS_PULL_OVER: Final = frozenset({"404", "408"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """How far a stream was read: a sequence of an epoch, and the id found there."""

    seq: int = 0
    id: str = ""
    created: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscribed:
    """What to read, and the fixed name of the consumer that reads it."""

    stream: str
    filters: tuple[str, ...]
    name: str
    replay: bool = False
    """Begin at the first message at each opening: for last-value streams."""


class StreamReader:
    """Delivers one stream's heard subjects, in order, without gaps."""

    def __init__(self, log: Log, what: Subscribed, *, wake: asyncio.Event) -> None:
        self.stream = what.stream
        self.filters = what.filters
        self.place = Place()
        self.wake = wake
        self._log = log
        self._name = what.name
        self._replay = what.replay
        self._ready: deque[Raw] = deque()
        self._subscription: Subscription | None = None
        self._inbox = ""
        self._credits = 0
        self._delivered = 0
        self._heard_at = time.monotonic()
        self._broken = True

    @property
    def silent_seconds(self) -> float:
        """How long the server has said nothing, not even a heartbeat."""
        return time.monotonic() - self._heard_at

    @property
    def healthy(self) -> bool:
        """Whether the consumer is open and answers."""
        return not self._broken and self.silent_seconds < _SILENCE_SECONDS

    def start(self, place: Place) -> None:
        """Begin behind `place`; the consumer is opened by the first `refresh`."""
        self.place = place
        self._log.bus.on_reconnect(self._break)

    async def refresh(self) -> None:
        """Reopen what broke. Raises LogLostError or UnreachableError."""
        if self._broken or self.silent_seconds > _SILENCE_SECONDS:
            await self._open()

    def take(self, most: int) -> list[Raw]:
        """Hand out what is there now, at most `most`."""
        count = min(most, len(self._ready))
        taken = [self._ready.popleft() for _ in range(count)]
        if taken:
            newest = taken[-1]
            self.place = Place(seq=newest.seq, id=newest.id, created=self.place.created)
        if self._ready:
            self.wake.set()  # whoever takes a part must come again for the rest
        return taken

    async def replenish(self) -> None:
        """Ask for more once half of the credits are used."""
        if (
            not self._broken
            and self._credits < _CREDITS // 2
            and len(self._ready) < _CREDITS
        ):
            await self._pull(_CREDITS - self._credits)

    async def close(self) -> None:
        """Stop reading; the server forgets the consumer by itself."""
        self._log.bus.forget(self._break)
        self._broken = True
        if self._subscription is not None:
            await self._subscription.unsubscribe()
            self._subscription = None

    def _break(self) -> None:
        self._broken = True
        self.wake.set()

    async def _open(self) -> None:
        if self._replay:
            self.place = Place()
        else:
            await self.check()
        if self._subscription is not None:
            await self._subscription.unsubscribe()
        self._ready.clear()
        self._delivered, self._credits = 0, 0
        api = self._log.bus.ask_api
        await api(f"CONSUMER.DELETE.{self.stream}.{self._name}", {})
        # A single filter stands in the subject, so that rights can be tied to it.
        pinned = f".{self.filters[0]}" if len(self.filters) == 1 else ""
        answer = await api(
            f"CONSUMER.CREATE.{self.stream}.{self._name}{pinned}", self._consumer()
        )
        if "error" in answer:
            raise UnreachableError(
                what=f"consumer {self._name} of {self.stream}",
                address=self._log.bus.address.url,
                hint=str(answer["error"]),
            )
        self._inbox = self._log.bus.client.new_inbox()
        self._subscription = await self._log.bus.subscribe(self._inbox, self._receive)
        self._broken = False
        self._heard_at = time.monotonic()
        await self._pull(_CREDITS)

    async def check(self) -> None:
        """Make sure the stream still holds what was read. Raises LogLostError."""
        facts = await self._log.facts(self.stream)
        place = self.place
        if not place.created:
            self.place = Place(seq=place.seq, id=place.id, created=facts.created)
            return
        if facts.created != place.created:
            raise LogLostError(
                stream=self.stream,
                expected=f"the stream created {place.created}",
                found=f"one created {facts.created}",
            )
        if facts.last_seq < place.seq:
            raise LogLostError(
                stream=self.stream,
                expected=f"an entry {place.seq}",
                found=f"{facts.last_seq} as the last",
            )
        if place.seq and place.id:
            await self._check_id(place)

    async def _check_id(self, place: Place) -> None:
        found = await self._log.get(self.stream, {"seq": place.seq})
        if found is not None and found.seq == place.seq and found.id != place.id:
            raise LogLostError(
                stream=self.stream,
                expected=f"event {place.id} at {place.seq}",
                found=found.id or "another message",
            )

    def _consumer(self) -> dict[str, Any]:
        single = len(self.filters) == 1
        return {
            "stream_name": self.stream,
            "config": {
                "name": self._name,
                "ack_policy": "none",
                "deliver_policy": "by_start_sequence",
                "opt_start_seq": self.place.seq + 1,
                **(
                    {"filter_subject": self.filters[0]}
                    if single
                    else {"filter_subjects": list(self.filters)}
                ),
                "inactive_threshold": _INACTIVE_SECONDS * _NANOSECONDS,
                "max_waiting": 8,
                "mem_storage": True,
                "num_replicas": 1,
            },
        }

    async def _pull(self, count: int) -> None:
        self._credits += count
        await self._log.bus.client.publish(
            f"$JS.API.CONSUMER.MSG.NEXT.{self.stream}.{self._name}",
            json.dumps(
                {
                    "batch": count,
                    "expires": int(_EXPIRES_SECONDS * _NANOSECONDS),
                    "idle_heartbeat": int(_HEARTBEAT_SECONDS * _NANOSECONDS),
                }
            ).encode(),
            reply=self._inbox,
        )

    async def _receive(self, message: Msg) -> None:
        self._heard_at = time.monotonic()
        found = message.headers or {}
        status = found.get("Status")
        if status is not None and not message.data and message.reply[:8] != "$JS.ACK.":
            await self._on_status(status, found)
            return
        _, _, stream, _, _, seq, count, stamp, _ = message.reply.split(".")[-9:]
        self._credits -= 1
        self._delivered += 1
        if int(count) != self._delivered:  # something was lost on the way: read again
            self._break()
            return
        self._ready.append(
            Raw(
                stream=stream,
                seq=int(seq),
                time=_EPOCH + timedelta(microseconds=int(stamp) // 1000),
                id=EventId(found.get("ce-id", "")),
                subject=message.subject,
                body=message.data,
            )
        )
        self.wake.set()

    async def _on_status(self, status: str, found: dict[str, str]) -> None:
        if status == "100":
            return
        pending = int(found.get("Nats-Pending-Messages", "0"))
        self._credits = max(0, self._credits - pending)
        if status in _STATUS_PULL_OVER:
            await self.replenish()
        else:  # 409 consumer deleted or leader changed, 503 nobody there
            self._break()
