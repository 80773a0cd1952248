"""Owns the console's routes: what is asked over HTTP, and how it is answered."""

import json
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass
from difflib import get_close_matches
from http import HTTPStatus
from itertools import islice
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Header, Query, Response
from fastapi.responses import JSONResponse, PlainTextResponse, StreamingResponse
from sse_starlette import EventSourceResponse, ServerSentEvent

from trainmaster.console import answers, office
from trainmaster.console.api_office import add_office
from trainmaster.console.finding import find, namesakes
from trainmaster.console.output import Lines, Piece
from trainmaster.console.reading import OutputWish, Reading
from trainmaster.console.settings import (
    JOBS_DEFAULT,
    JOBS_MAX,
    LOOK_SECONDS,
    PING_SECONDS,
    TAIL_LINES_MAX,
)
from trainmaster.console.state import State, Told
from trainmaster.console.view import JobView
from trainmaster.core.record import JobState
from trainmaster.core.rights import Action
from trainmaster.runtime.auth import Caller, Gate, needs
from trainmaster.runtime.auth_routes import Guard, guarded_router
from trainmaster.runtime.clock import pause
from trainmaster.runtime.http import ProblemError

_T = TypeVar("_T")
_Number = Annotated[int | None, Query(ge=0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Desk:
    """What every route works with; `gate` says whether a follower may stay."""

    router: APIRouter
    reading: Reading
    gate: Gate


def routes(reading: Reading, *, guard: Guard) -> APIRouter:
    """Make the routes, all of them guarded."""
    router = guarded_router(guard)
    desk = _Desk(router=router, reading=reading, gate=guard.gate)
    _add_lists(router, reading)
    _add_events(desk)
    _add_logs(desk)
    add_office(router, reading, guard.gate.now)
    return router


def _add_lists(router: APIRouter, reading: Reading) -> None:
    @router.get("/jobs")
    async def jobs(
        caller: Annotated[Caller, needs(Action.JOB_VIEW)],
        team: str = "",
        state: str = "",
        limit: Annotated[int, Query(ge=0, le=JOBS_MAX)] = 0,
        after: str = "",
    ) -> JSONResponse:
        """List jobs, the newest first; `after` is the last id of the page before."""
        known = reading.state()
        shelf, wanted = known.jobs, _states(state)
        if team:
            _check_team(known, team, caller)
        before = find(shelf, after, caller.sees).job.key if after else None
        fitting = (
            view
            for view in shelf.newest_first(before=before)
            if caller.sees(view.job.key.team)
            and (not team or view.job.key.team == team)
            and (not wanted or view.job.state in wanted)
        )
        rows = [
            answers.job_row(view, reading.now(view.job.key))
            for view in islice(fitting, limit or JOBS_DEFAULT)
        ]
        return JSONResponse({"jobs": rows})

    @router.get("/jobs/{reference}")
    async def job(
        reference: str, caller: Annotated[Caller, needs(Action.JOB_VIEW)]
    ) -> JSONResponse:
        """Tell all about one job, by id, unique prefix or name."""
        view = await reading.view(reference, caller.sees)
        others = namesakes(reading.state().jobs, view, caller.sees)
        told = answers.job_details(view, reading.now(view.job.key))
        return JSONResponse({**told, "namesakes": others})

    @router.get("/nodes")
    async def nodes(
        caller: Annotated[Caller, needs(Action.NODE_VIEW)],
    ) -> JSONResponse:
        """List nodes with what is charged on them and what blocks them."""
        state = reading.state()
        rows = answers.node_rows(state.nodes, state.jobs, caller.sees)
        return JSONResponse({"nodes": rows})


def _add_events(desk: _Desk) -> None:
    router, reading = desk.router, desk.reading

    @router.get("/jobs/{reference}/events", response_class=Response)
    async def events(
        reference: str,
        caller: Annotated[Caller, needs(Action.JOB_VIEW)],
        after: Annotated[int, Query(ge=0)] = 0,
        last_event_id: Annotated[int, Header(ge=0)] = 0,
        *,
        follow: bool = False,
    ) -> Response:
        """List a job's events, or stream them; `seq` is their number in its life."""
        key = (await reading.view(reference, caller.sees)).job.key
        after = max(after, last_event_id)
        if not follow:
            told = await reading.events(key, after=after)
            return JSONResponse(answers.event_lines(told))
        source = reading.follow_events(key, after=after)
        return _stream(_while(source, desk.gate, caller), _event)

    @router.get("/events/stream", response_class=Response)
    async def everything(
        caller: Annotated[Caller, needs(Action.EVENT_FOLLOW)],
    ) -> Response:
        """Stream all that happens from now on, as far as it may be seen."""
        reading.state()
        source = _while(reading.follow_everything(), desk.gate, caller)

        def heard(told: Told) -> bool:
            return office.audible(reading.state(), told, caller)

        return _stream(_only(source, heard), _live)


def _add_logs(desk: _Desk) -> None:
    router, reading = desk.router, desk.reading

    @router.get("/jobs/{reference}/logs", response_class=Response)
    async def logs(  # noqa: PLR0913 - one parameter for each of the query's
        reference: str,
        caller: Annotated[Caller, needs(Action.JOB_READ_OUTPUT)],
        attempt: _Number = None,
        rank: _Number = None,
        tail: Annotated[int | None, Query(ge=0, le=TAIL_LINES_MAX)] = None,
        *,
        follow: bool = False,
    ) -> Response:
        """Give a job's output as text, or stream it with its rank and place."""
        view = await reading.view(reference, caller.sees)
        caller.require(Action.JOB_READ_OUTPUT, view.job.key.team)
        wish = OutputWish(key=view.job.key, attempt=attempt, rank=rank)
        if follow:
            source = _while(reading.follow_output(wish), desk.gate, caller)
            return _stream(source, _piece)
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


def _check_team(state: State, team: str, caller: Caller) -> None:
    """Tell a team that does not exist from one without jobs."""
    known = sorted(k.team for k in state.teams if caller.sees(k.team))
    if team in known:
        return
    if caller.sees(team) and any(key.team == team for key in state.jobs):
        return
    near = get_close_matches(team, known, n=1)
    hint = f"did you mean {near[0]}?" if near else "`tm teams` shows all"
    raise ProblemError(
        status=HTTPStatus.NOT_FOUND,
        detail=f"there is no team {team!r}; {hint}",
        members={"candidates": near},
    )


def _several(view: JobView, rank: int | None) -> bool:
    return rank is None and view.job.spec.ranks > 1


# ---------------------------------------------------------------------------- streams


class _RevokedError(Exception):
    """Whoever follows may not any more."""


def _stream(
    source: AsyncGenerator[Any], write: Callable[[Any], ServerSentEvent]
) -> EventSourceResponse:
    """Send what comes; `end` tells that nothing more will, so come not back."""

    async def events() -> AsyncIterator[ServerSentEvent]:
        try:
            async for each in source:
                yield write(each)
            yield ServerSentEvent("{}", event="end")
        except _RevokedError:
            return
        finally:
            await source.aclose()

    return EventSourceResponse(events(), ping=PING_SECONDS)


async def _while(
    source: AsyncGenerator[_T], gate: Gate, caller: Caller
) -> AsyncGenerator[_T]:
    """Go on as long as the caller is let in: a revoked token hears nothing more."""
    try:
        async for each in source:
            while (stays := gate.honours(caller)) is None:
                await pause(LOOK_SECONDS)
            if not stays:
                raise _RevokedError
            yield each
    finally:
        await source.aclose()


async def _only(
    source: AsyncGenerator[_T], wanted: Callable[[_T], bool]
) -> AsyncGenerator[_T]:
    try:
        async for each in source:
            if wanted(each):
                yield each
    finally:
        await source.aclose()


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
