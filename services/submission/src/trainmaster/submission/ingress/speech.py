"""Owns how submission says what is not on the log: metrics, hints, answers."""

import json
from typing import Any

from trainmaster.core import ingress_subjects, subjects
from trainmaster.core.envelope import headers
from trainmaster.core.errors import UnreachableError
from trainmaster.core.ids import JobKey, event_id
from trainmaster.core.ingress import CheckpointSaved, RequestAnswered
from trainmaster.core.messages import MetricSample
from trainmaster.core.model import Message
from trainmaster.core.subjects import RankStream
from trainmaster.runtime.bus import Bus
from trainmaster.runtime.clock import wall
from trainmaster.submission.ingress.envelope import From
from trainmaster.submission.ingress.settings import PUBLISH_SECONDS


class Speech:
    """Says things under ids that follow from their cause, so that again is harmless."""

    def __init__(self, bus: Bus, *, service: str) -> None:
        self._bus = bus
        self._service = service

    async def metric(
        self, sender: From, place: RankStream, sample: MetricSample
    ) -> None:
        """Say a rank's metrics as its node would."""
        subject = subjects.metric(place.key, place.attempt, place.rank)
        await self._store(subject, sample, cause=f"{sender.source} {sender.id}")

    async def hint(self, key: JobKey, saved: CheckpointSaved) -> None:
        """Say that there may be a new checkpoint: who does not hear it looks later."""
        subject = ingress_subjects.checkpoint_hint(key)
        await self._bus.client.publish(subject, saved.to_json())

    async def answer(self, sender: From, seq: int, answer: RequestAnswered) -> None:
        """Tell a source what became of what it said."""
        token = ingress_subjects.reply_token(sender.id, seq)
        subject = ingress_subjects.reply(sender.source, token)
        cause = sender.id or f"seq-{seq}"
        await self._store(subject, answer, cause=f"{cause} {answer.outcome}")

    async def _store(self, subject: str, message: Message, *, cause: str) -> None:
        kind = type(message).__name__
        id_ = event_id(epoch=0, scope=subject, head="", kind=kind, cause=cause)
        attributes = headers(
            message,
            id_=id_,
            source=self._service,
            subject=subject,
            time=wall().isoformat(),
        )
        answer = await self._bus.request(
            subject,
            message.to_json(),
            seconds=PUBLISH_SECONDS,
            headers={**attributes, "Nats-Msg-Id": id_},
        )
        stored: dict[str, Any] = json.loads(answer.data)
        if "error" in stored:
            raise UnreachableError(
                what=subject,
                address=self._bus.address.url,
                hint=f"it cannot be stored: {stored['error']['description']}",
            )
