"""Owns the console's routes: what is asked over HTTP, and how it is answered."""

import json
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from http import HTTPStatus
from itertools import islice
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Response
from fastapi.responses import JSONResponse, PlainTextResponse, StreamingResponse
from pydantic import SecretStr
from sse_starlette import EventSourceResponse, ServerSentEvent

from trainmaster.console import answers
from trainmaster.console.finding import find
from trainmaster.console.output import Lines, Piece
from trainmaster.console.reading import OutputWish, Reading
from trainmaster.console.settings import (
    JOBS_DEFAULT,
    JOBS_MAX,
    PING_SECONDS,
    TAIL_LINES_MAX,
)
from trainmaster.console.state import Told
from trainmaster.console.view import JobView
from trainmaster.core.record import JobState
from trainmaster.runtime.http import ProblemError, guarded_router

_Number = Annotated[int | None, Query(ge=0)]


def routes(reading: Reading, *, token: SecretStr) -> APIRouter:
    """Make the routes, all of them behind the token."""
    router = guarded_router(token)
    _add_lists(router, reading)
    _add_events(router, reading)
    _add_logs(router, reading)
    return router


def _add_lists(router: APIRouter, reading: Reading) -> None:
    @router.get("/jobs")
    async def jobs(
        team: str = "",
        state: str = "",
        limit: Annotated[int, Query(ge=0, le=JOBS_MAX)] = 0,
        after: str = "",
    ) -> JSONResponse:
        """List jobs, the newest first; `after` is the last id of the page before."""
        shelf = reading.state().jobs
        wanted = _states(state)
        before = find(shelf, after).job.key if after else None
        fitting = (
            view
            for view in shelf.newest_first(before=before)
            if (not team or view.job.key.team == team)
            and (not wanted or view.job.state in wanted)
        )
        rows = [
            answers.job_row(view, reading.status.of(view.job.key))
            for view in islice(fitting, limit or JOBS_DEFAULT)
        ]
        return JSONResponse({"jobs": rows})

    @router.get("/jobs/{reference}")
    async def job(reference: str) -> JSONResponse:
        """Tell all about one job, by id, unique prefix or name."""
        view = await reading.view(reference)
        now = reading.status.of(view.job.key)
        return JSONResponse(answers.job_details(view, now))

    @router.get("/nodes")
    async def nodes() -> JSONResponse:
        """List nodes with what is charged on them and what blocks them."""
        state = reading.state()
        return JSONResponse({"nodes": answers.node_rows(state.nodes, state.jobs)})


def _add_events(router: APIRouter, reading: Reading) -> None:
    @router.get("/jobs/{reference}/events", response_class=Response)
    async def events(
        reference: str,
        after: Annotated[int, Query(ge=0)] = 0,
        last_event_id: Annotated[int, Header(ge=0)] = 0,
        *,
        follow: bool = False,
    ) -> Response:
        """List a job's events, or stream them; `seq` is their number in its life."""
        key = (await reading.view(reference)).job.key
        after = max(after, last_event_id)
        if not follow:
            told = await reading.events(key, after=after)
            return JSONResponse(answers.event_lines(told))
        return _stream(reading.follow_events(key, after=after), _event)

    @router.get("/events/stream", response_class=Response)
    async def everything() -> Response:
        """Stream all that happens from now on."""
        reading.state()
        return _stream(reading.follow_everything(), _live)


def _add_logs(router: APIRouter, reading: Reading) -> None:
    @router.get("/jobs/{reference}/logs", response_class=Response)
    async def logs(
        reference: str,
        attempt: _Number = None,
        rank: _Number = None,
        tail: Annotated[int | None, Query(ge=0, le=TAIL_LINES_MAX)] = None,
        *,
        follow: bool = False,
    ) -> Response:
        """Give a job's output as text, or stream it with its rank and place."""
        view = await reading.view(reference)
        wish = OutputWish(key=view.job.key, attempt=attempt, rank=rank)
        if follow:
            return _stream(reading.follow_output(wish), _piece)
        text = _text(reading.output(wish), named=_several(view, rank))
        if tail is not None:
            return PlainTextResponse(await _last(text, tail))
        return StreamingResponse(text, media_type="text/plain; charset=utf-8")


def _states(told: str) -> frozenset[JobState]:
    """Read states, several with commas between them."""
    names = [name.strip().lower() for name in told.split(",") if name.strip()]
    known = {state.value: state for state in JobState if state is not JobState.NEW}
    for name in names:
        if name not in known:
            raise ProblemError(
                status=HTTPStatus.UNPROCESSABLE_ENTITY,
                detail=f"`state`: {name!r} is none; use {', '.join(known)}",
            )
    return frozenset(known[name] for name in names)


def _several(view: JobView, rank: int | None) -> bool:
    return rank is None and view.job.spec.ranks > 1


# ---------------------------------------------------------------------------- streams


def _stream(
    source: AsyncGenerator[Any], write: Callable[[Any], ServerSentEvent]
) -> EventSourceResponse:
    async def events() -> AsyncIterator[ServerSentEvent]:
        try:
            async for each in source:
                yield write(each)
        finally:
            await source.aclose()

    return EventSourceResponse(events(), ping=PING_SECONDS)


def _event(told: Told) -> ServerSentEvent:
    return ServerSentEvent(_json(answers.event_line(told)), id=str(told.seq))


def _live(told: Told) -> ServerSentEvent:
    return ServerSentEvent(_json(answers.live_line(told)))


def _piece(piece: Piece) -> ServerSentEvent:
    return ServerSentEvent(_json(piece.told()))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


async def _text(pieces: AsyncGenerator[Piece], *, named: bool) -> AsyncGenerator[str]:
    lines = Lines(named=named)
    async for piece in pieces:
        yield lines.add(piece)
    yield lines.end()


async def _last(text: AsyncGenerator[str], count: int) -> str:
    kept: deque[str] = deque(maxlen=count)
    rest = ""
    async for part in text:
        *whole, rest = (rest + part).split("\n")
        kept.extend(line + "\n" for line in whole)
    if rest:
        kept.append(rest)
    return "".join(kept)
