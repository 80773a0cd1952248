"""Reads server-sent events: lines in, events out."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSentEvent:
    """One event of a stream; `id` is "" when the server gave none."""

    data: str
    event: str = "message"
    id: str = ""


def parse(lines: Iterable[str]) -> Iterator[ServerSentEvent]:
    """Join lines to events as the standard says; one cut off at the end is dropped."""
    fields: dict[str, list[str]] = {}
    for line in lines:
        if not line:
            if "data" in fields:
                yield _event(fields)
            fields = {}
            continue
        name, _, value = line.partition(":")
        if name:  # a line that begins with a colon is a comment that keeps us alive
            fields.setdefault(name, []).append(value.removeprefix(" "))


def _event(fields: dict[str, list[str]]) -> ServerSentEvent:
    return ServerSentEvent(
        data="\n".join(fields["data"]),
        event=fields.get("event", ["message"])[-1],
        id=fields.get("id", [""])[-1],
    )
