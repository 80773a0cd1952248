"""How an event travels: CloudEvents 1.0 attributes in headers, JSON in the body.

`decode` is total: what cannot be read becomes `Undecodable`, which every reader ignores
alike and counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from pydantic import ValidationError

from trainmaster.core import subjects  # imports every family, so REGISTRY is whole
from trainmaster.core.events import REGISTRY, Event
from trainmaster.core.ids import EventId, Key
from trainmaster.core.model import Message

PACKAGE: Final = "trainmaster.events.v1"
SCHEMA_FOLDER: Final = "proto/schemas"


class Entry(NamedTuple):
    """One stored event: its place in a stream, the server's time, what it says.

    Like `Raw` a tuple, because one is made for every event of every reader.
    """

    stream: str
    seq: int
    time: datetime
    id: EventId
    family: str
    key: Key
    event: Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Undecodable:
    """A stored message nobody can read; it still becomes its chain's head."""

    stream: str
    seq: int
    time: datetime
    id: EventId
    subject: str
    reason: str


class Raw(NamedTuple):
    """A message as the stream delivered it."""

    stream: str
    seq: int
    time: datetime
    id: EventId
    subject: str
    body: bytes


def ce_type(event: type[Message]) -> str:
    """Name the event's type: the full name of its protobuf message."""
    return f"{PACKAGE}.{event.__name__}"


def headers(
    event: Message, *, id_: str, source: str, subject: str, time: str
) -> dict[str, str]:
    """CloudEvents attributes of one message, as message headers; `time` is RFC 3339."""
    name = type(event).__name__
    return {
        "ce-specversion": "1.0",
        "ce-id": id_,
        "ce-type": f"{PACKAGE}.{name}",
        "ce-source": f"/trainmaster/{source}",
        "ce-subject": subject,
        "ce-time": time,
        "ce-dataschema": f"{SCHEMA_FOLDER}/{name}.json",
        "content-type": "application/json",
    }


def decode(raw: Raw) -> Entry | Undecodable:
    """Read one stored message; never raises."""
    parsed = subjects.parse(raw.subject)
    if parsed is None:
        return _undecodable(raw, "unknown subject")
    event_class = REGISTRY.get((parsed.family, parsed.kind))
    if event_class is None:
        return _undecodable(raw, f"unknown kind {parsed.kind!r}")
    try:
        event = event_class.from_json(raw.body)
    except ValidationError as error:
        return _undecodable(raw, f"{error.error_count()} invalid fields")
    return Entry(
        stream=raw.stream,
        seq=raw.seq,
        time=raw.time,
        id=raw.id,
        family=parsed.family,
        key=parsed.key,
        event=event,
    )


def _undecodable(raw: Raw, reason: str) -> Undecodable:
    return Undecodable(
        stream=raw.stream,
        seq=raw.seq,
        time=raw.time,
        id=raw.id,
        subject=raw.subject,
        reason=reason,
    )


def chain_of(subject: str) -> str:
    """Name the compare-and-set scope a stored subject belongs to; "" for none."""
    return subjects.scope_of(subject)


def trace_of(message_headers: Mapping[str, str]) -> str:
    """Read the W3C trace context of a message, "" for none."""
    return message_headers.get("traceparent", "")
