"""Owns submission's routes: what comes over HTTP becomes a request to the desk."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated, Final, Literal, TypedDict

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from trainmaster.core.ids import JobId, JobKey, NodeKey
from trainmaster.core.model import Int32
from trainmaster.core.rights import Action
from trainmaster.runtime.auth import Caller, needs
from trainmaster.runtime.auth_routes import Guard, guarded_router
from trainmaster.submission import requests
from trainmaster.submission.desk import Desk, UnheardError
from trainmaster.submission.http_source import (
    DOCUMENTED,
    add_schema,
    once_of,
    source_of,
    told_of,
)
from trainmaster.submission.http_teams import add_office
from trainmaster.submission.problems import told

_REQUEST_SECONDS: Final = 15.0
"""Longer than the log may take to answer, shorter than clients wait."""


class _Asked(TypedDict):
    key: JobKey
    by: str
    origin: str


class Receipt(BaseModel):
    """A job that is on the log, at `seq`."""

    job: str
    team: str
    name: str
    seq: int


class Change(BaseModel):
    """What became of a request about a job; `seq` is 0 when it was so already."""

    job: str
    team: str
    changed: bool
    seq: int = 0
    message: str = ""


class NodeChange(BaseModel):
    """What became of a request about a node; `seq` is 0 when it was so already."""

    node: str
    pool: str
    changed: bool
    seq: int = 0
    message: str = ""


class Why(BaseModel):
    """Why somebody wants something."""

    reason: str = ""


class Priority(BaseModel):
    """A job's new place in the queue; higher goes first."""

    priority: Int32


def routes(desk: Desk, *, guard: Guard) -> APIRouter:
    """Make the routes, guarded but for the schema, which tells of nobody."""
    router = guarded_router(guard)
    _add_submit(router, desk)
    _add_changes(router, desk)
    _add_nodes(router, desk)
    add_office(router, desk)
    every = APIRouter()
    every.include_router(router)
    add_schema(every)
    return every


def _add_submit(router: APIRouter, desk: Desk) -> None:
    @router.post(
        "/jobs",
        status_code=201,
        responses={200: {"model": Receipt}, 201: {"model": Receipt}},
        openapi_extra=DOCUMENTED,
    )
    async def submit(
        request: Request, caller: Annotated[Caller, needs(Action.JOB_SUBMIT)]
    ) -> JSONResponse:
        """Submit a job file. 201 for a new job, 200 when the key was used before."""
        with told():
            source = await source_of(request)
            once = once_of(request, source)
            async with _in_time():
                accepted = await desk.submit(source, by=caller, once=once)
        receipt = Receipt(
            job=accepted.key.job,
            team=accepted.key.team,
            name=accepted.name,
            seq=accepted.seq,
        )
        return JSONResponse(
            receipt.model_dump(), status_code=201 if accepted.new else 200
        )

    @router.post("/jobs/validate", openapi_extra=DOCUMENTED)
    async def validate(
        request: Request, caller: Annotated[Caller, needs(Action.JOB_SUBMIT)]
    ) -> JSONResponse:
        """Say what a job file means, and submit nothing."""
        with told():
            found = await desk.validate(await source_of(request), by=caller)
        return JSONResponse(
            {
                "spec": found.spec.model_dump(mode="json"),
                "canonical": found.canonical(),
                "notices": [told_of(each) for each in found.notices],
            }
        )


def _add_changes(router: APIRouter, desk: Desk) -> None:
    async def change(request: requests.Request) -> Change:
        with told():
            async with _in_time():
                outcome = await desk.change(request)
        job, team = request.key.job, request.key.team
        if isinstance(outcome, requests.Stored):
            return Change(job=job, team=team, changed=True, seq=outcome.seq)
        return Change(job=job, team=team, changed=False, message=outcome.message)

    @router.post("/jobs/{team}/{job}/cancel")
    async def cancel(
        team: str,
        job: str,
        caller: Annotated[Caller, needs(Action.JOB_CANCEL)],
        why: Why | None = None,
    ) -> Change:
        """End a job; no attempt starts after this."""
        reason = why.reason if why else ""
        return await change(requests.Cancel(**_asked(team, job, caller), reason=reason))

    @router.post("/jobs/{team}/{job}/hold")
    async def hold(
        team: str,
        job: str,
        caller: Annotated[Caller, needs(Action.JOB_HOLD)],
        why: Why | None = None,
    ) -> Change:
        """Keep a waiting job from being placed."""
        reason = why.reason if why else ""
        return await change(requests.Hold(**_asked(team, job, caller), reason=reason))

    @router.post("/jobs/{team}/{job}/release")
    async def release(
        team: str, job: str, caller: Annotated[Caller, needs(Action.JOB_RELEASE)]
    ) -> Change:
        """Let a held job be placed again."""
        return await change(requests.Release(**_asked(team, job, caller)))

    @router.post("/jobs/{team}/{job}/priority")
    async def reprioritize(
        team: str,
        job: str,
        wanted: Priority,
        caller: Annotated[Caller, needs(Action.JOB_PRIORITIZE)],
    ) -> Change:
        """Move a job in the queue."""
        return await change(
            requests.Reprioritize(**_asked(team, job, caller), priority=wanted.priority)
        )


def _add_nodes(router: APIRouter, desk: Desk) -> None:
    verbs = {"drain": requests.Drain, "undrain": requests.Undrain}

    @router.post("/nodes/{pool}/{node}/{verb}")
    async def change_node(
        pool: str,
        node: str,
        verb: Literal["drain", "undrain"],
        caller: Annotated[Caller, needs(Action.NODE_DRAIN)],
        why: Why | None = None,
    ) -> NodeChange:
        """Give a node no new work, or work again; what runs there may end."""
        key, reason = NodeKey(pool, node), why.reason if why else ""
        with told():
            request = verbs[verb](
                key=key, by=caller.subject, origin=caller.origin, reason=reason
            )
            async with _in_time():
                outcome = await desk.change_node(request)
        if isinstance(outcome, requests.Stored):
            return NodeChange(node=node, pool=pool, changed=True, seq=outcome.seq)
        return NodeChange(node=node, pool=pool, changed=False, message=outcome.message)


@asynccontextmanager
async def _in_time() -> AsyncGenerator[None]:
    """Answer 503 in time, whichever server is gone; asking again is safe."""
    try:
        async with asyncio.timeout(_REQUEST_SECONDS):
            yield
    except TimeoutError as error:
        raise UnheardError from error


def _asked(team: str, job: str, caller: Caller) -> _Asked:
    """Say about which job somebody asks, and who it is."""
    return _Asked(key=JobKey(team, JobId(job)), by=caller.subject, origin=caller.origin)
