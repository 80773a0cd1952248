"""Owns the way of one message: understood, done once, answered, acknowledged.

    understood ─ known id? the same answer ─▶ act ─ answer written down ─▶ told ─▶ ack

A crash anywhere leaves the message on the stream. It comes again and meets either the
written answer, or an act that is harmless when repeated. Messages of one source are
worked off one after the other, in order; different sources do not wait for each other.
"""

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from nats.aio.msg import Msg

from trainmaster.core.errors import Fault
from trainmaster.core.ingress import Outcome, RequestAnswered
from trainmaster.core.rights import Grant
from trainmaster.runtime.auth import Caller
from trainmaster.runtime.failpoints import FAILPOINTS
from trainmaster.runtime.parking import Parking
from trainmaster.submission.ingress.acts import Acts, refused
from trainmaster.submission.ingress.envelope import (
    Arrival,
    From,
    Message,
    Unreadable,
    Wrong,
    understood,
)
from trainmaster.submission.ingress.ports import Answers, Known, Speaker


class Grants(Protocol):
    """Says what every source is."""

    def grants(self) -> Mapping[str, Grant]:
        """Give the role of every source, by name."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Clerk:
    """Works off what other systems say, each id of each source once."""

    acts: Acts
    answers: Answers
    sources: Grants
    speaker: Speaker
    parking: Parking
    _turns: defaultdict[str, asyncio.Lock] = field(
        default_factory=lambda: defaultdict(asyncio.Lock)
    )

    async def take(self, message: Msg) -> None:
        """Handle one message; returns once it may be forgotten."""
        found = understood(
            Message(
                subject=message.subject,
                headers=message.headers or {},
                body=message.data,
            )
        )
        sender, seq = found.sender, message.metadata.sequence.stream
        async with self._turns[sender.source]:
            if isinstance(found, Unreadable):
                await self.parking.park(message, found.reason)
                answer = _parked(sender, found.reason)
            else:
                answer = await self._answered(found)
            if sender.source:
                await self.speaker.answer(sender, seq, answer)
        FAILPOINTS.reach("submission.before_ack")

    async def _answered(self, found: Arrival | Wrong) -> RequestAnswered:
        known = await self.answers.recall(found.sender)
        if known is None:
            answer = await self._done(found)
            FAILPOINTS.reach("submission.before_answer")
            mine = Known(digest=found.digest, answer=answer)
            known = await self.answers.keep(found.sender, mine)
        if known.digest != found.digest:
            message = "it was used for something else; take a new one"
            return refused(found.sender, (Fault(field="ce-id", message=message),))
        return known.answer

    async def _done(self, found: Arrival | Wrong) -> RequestAnswered:
        if isinstance(found, Wrong):
            return refused(found.sender, found.faults)
        return await self.acts.act(found, self._caller(found.sender))

    def _caller(self, sender: From) -> Caller:
        grant = self.sources.grants().get(sender.source)
        return Caller(
            subject=f"source:{sender.source}",
            grants=() if grant is None else (grant,),
            origin=sender.origin,
        )


def _parked(sender: From, reason: str) -> RequestAnswered:
    return RequestAnswered(
        request=sender.id, kind=sender.kind, outcome=Outcome.PARKED, reason=reason
    )
