"""Owns messages nobody could work off: kept whole with the reason, shown, replayed.

A parked message is taken off its stream, so it never holds up the rest. It stays until
somebody replays it: said again as it was, on the subject it came on.
"""

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from nats.aio.msg import Msg
from prometheus_client import Counter

from trainmaster.core import ingress_subjects, subjects
from trainmaster.core.envelope import Raw, headers
from trainmaster.core.errors import NotFoundError, UnreachableError
from trainmaster.core.ingress import MessageParked
from trainmaster.runtime.clock import wall
from trainmaster.runtime.log import Log
from trainmaster.runtime.telemetry import Metrics, logger

_SECONDS: Final = 5.0
_REASON_CHARACTERS_MAX: Final = 500
_MESSAGE_ID: Final = "Nats-Msg-Id"
_PER_DELIVERY: Final = "nats-"
"""What the server adds, or acts on, when a message is stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parked:
    """One parked message, under its number, and since when it is parked."""

    number: int
    at: datetime
    message: MessageParked

    @property
    def body(self) -> bytes:
        """What it said, byte for byte."""
        return base64.b64decode(self.message.body_base64)


class Parking:
    """Parks messages of streams that one service works off."""

    def __init__(self, log: Log, metrics: Metrics, *, service: str) -> None:
        self._log = log
        self._service = service
        self._logger = logger(service)
        self._count = Counter(
            "tm_parked",
            "Messages nobody could work off",
            ["stream"],
            registry=metrics.registry,
        )

    async def park(self, message: Msg, reason: str) -> None:
        """Put a stored message aside. Raises UnreachableError; again is harmless."""
        place = message.metadata
        stream, seq = place.stream, place.sequence.stream
        parked = MessageParked(
            stream=stream,
            seq=seq,
            subject=message.subject,
            headers=_plain(message.headers or {}),
            body_base64=base64.b64encode(message.data).decode(),
            reason=reason[:_REASON_CHARACTERS_MAX],
        )
        subject, id_ = ingress_subjects.parked(stream), f"{stream}-{seq}"
        attributes = headers(
            parked,
            id_=id_,
            source=self._service,
            subject=subject,
            time=wall().isoformat(),
        )
        attributes[_MESSAGE_ID] = id_
        await self._publish(subject, parked.to_json(), attributes)
        self._count.labels(stream=stream).inc()
        self._logger.warning(
            "message_parked", subject=message.subject, reason=parked.reason
        )

    async def parked(self, *, after: int, most: int) -> Sequence[Parked]:
        """List what is parked, oldest first."""
        found: list[Parked] = []
        everything = ingress_subjects.everything_parked()
        async for raw in self._log.history(subjects.PARKED, everything, after=after):
            found.append(_read(raw))
            if len(found) >= most:
                break
        return found

    async def show(self, number: int) -> Parked:
        """Show one parked message. Raises NotFoundError."""
        raw = await self._log.get(subjects.PARKED, {"seq": number}) if number else None
        if raw is None:
            raise NotFoundError(
                kind="parked message",
                name=str(number),
                hint="see `GET /api/v1/parked`; one that was replayed is gone",
            )
        return _read(raw)

    async def replay(self, number: int) -> Parked:
        """Say a parked message again as it was; it is parked no more."""
        parked = await self.show(number)
        message = parked.message
        await self._publish(message.subject, parked.body, _again(message.headers))
        await self._log.bus.ask_api(
            f"STREAM.MSG.DELETE.{subjects.PARKED}", {"seq": number, "no_erase": True}
        )
        return parked

    async def _publish(
        self, subject: str, body: bytes, attributes: dict[str, str]
    ) -> None:
        answer = await self._log.bus.request(
            subject, body, seconds=_SECONDS, headers=attributes
        )
        stored: dict[str, Any] = json.loads(answer.data)
        if "error" in stored:
            raise UnreachableError(
                what=subject,
                address=self._log.bus.address.url,
                hint=f"it cannot be stored: {stored['error']['description']}",
            )


def _read(raw: Raw) -> Parked:
    return Parked(
        number=raw.seq, at=raw.time, message=MessageParked.from_json(raw.body)
    )


def _plain(found: dict[str, str]) -> dict[str, str]:
    """Keep header values as text that can be written as JSON."""
    return {
        name: value.encode(errors="replace").decode() for name, value in found.items()
    }


def _again(found: dict[str, str]) -> dict[str, str]:
    """Keep what was said; not what the server would take for the same delivery."""
    return {
        name: value
        for name, value in found.items()
        if not name.lower().startswith(_PER_DELIVERY) and value.isprintable()
    }
