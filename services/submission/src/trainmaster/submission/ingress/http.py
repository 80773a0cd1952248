"""Owns the routes of parked messages: seen, and replayed once their cause is mended."""

from datetime import datetime
from typing import Annotated, Final

from fastapi import APIRouter, Query
from pydantic import BaseModel

from trainmaster.core.rights import Action
from trainmaster.runtime.auth import Caller, needs
from trainmaster.runtime.auth_routes import Guard, guarded_router
from trainmaster.runtime.parking import Parked, Parking

_PAGE_MAX: Final = 200


class ParkedLine(BaseModel):
    """One parked message in a list."""

    number: int
    at: datetime
    stream: str
    seq: int
    subject: str
    reason: str
    bytes: int


class ParkedLines(BaseModel):
    """A page of parked messages."""

    parked: list[ParkedLine]


class ParkedWhole(ParkedLine):
    """One parked message, all of it; `text` shows what is no text as `?`."""

    headers: dict[str, str]
    text: str
    body_base64: str


def parked_routes(parking: Parking, *, guard: Guard) -> APIRouter:
    """Make the routes."""
    router = guarded_router(guard)

    @router.get("/parked")
    async def list_parked(
        _caller: Annotated[Caller, needs(Action.PARKED_VIEW)],
        after: Annotated[int, Query(ge=0)] = 0,
        limit: Annotated[int, Query(ge=1, le=_PAGE_MAX)] = 50,
    ) -> ParkedLines:
        """List messages nobody could work off, oldest first, after a number."""
        found = await parking.parked(after=after, most=limit)
        lines = [ParkedLine.model_validate(_line(each)) for each in found]
        return ParkedLines(parked=lines)

    @router.get("/parked/{number}")
    async def show_parked(
        number: int, _caller: Annotated[Caller, needs(Action.PARKED_VIEW)]
    ) -> ParkedWhole:
        """Show one of them whole."""
        return _whole(await parking.show(number))

    @router.post("/parked/{number}/replay")
    async def replay_parked(
        number: int, _caller: Annotated[Caller, needs(Action.PARKED_REPLAY)]
    ) -> ParkedLine:
        """Say it again as it was. It is parked no more, unless it fails again."""
        return ParkedLine.model_validate(_line(await parking.replay(number)))

    return router


def _line(parked: Parked) -> dict[str, object]:
    message = parked.message
    return {
        "number": parked.number,
        "at": parked.at,
        "stream": message.stream,
        "seq": message.seq,
        "subject": message.subject,
        "reason": message.reason,
        "bytes": len(parked.body),
    }


def _whole(parked: Parked) -> ParkedWhole:
    return ParkedWhole.model_validate(
        {
            **_line(parked),
            "headers": parked.message.headers,
            "text": parked.body.decode(errors="replace"),
            "body_base64": parked.message.body_base64,
        }
    )
