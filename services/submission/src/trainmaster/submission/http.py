"""Owns submission's routes: what comes over HTTP becomes a request to the desk."""

import hashlib
import re
from posixpath import isabs
from typing import Any, Final
from urllib.parse import unquote

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, SecretStr

from trainmaster.core.errors import Fault, SpecRejectedError
from trainmaster.core.ids import JobId, JobKey
from trainmaster.core.model import Int32
from trainmaster.runtime.http import guarded_router
from trainmaster.submission import requests
from trainmaster.submission.desk import Desk, Once
from trainmaster.submission.jobfile import Source
from trainmaster.submission.problems import (
    bad_request,
    told,
    too_large,
    unsupported_type,
)
from trainmaster.submission.settings import KEY_CHARACTERS_MAX, TEXT_BYTES_MAX

ADMIN: Final = "admin"
_YAML: Final = frozenset({"application/yaml", "application/x-yaml", "text/yaml"})
_JSON: Final = "application/json"
_KEY: Final = re.compile(rf"[\x21-\x7e]{{1,{KEY_CHARACTERS_MAX}}}")
_LABEL_CHARACTERS_MAX: Final = 200
_BODY: Final = {"schema": {"type": "object"}}
_TEXT: Final = {"type": "string"}
_TOLD_BESIDE: Final = (
    ("header", "Idempotency-Key", "the same key, the same job"),
    ("header", "X-Source", "what the file is called in messages, percent-encoded"),
    ("header", "X-Source-Directory", "where its relative paths begin, percent-encoded"),
    ("query", "name", "wins over the file's `name`"),
)
# Read by hand and only documented here: a submission is what this service is fast at.
_DOCUMENTED: Final[dict[str, Any]] = {
    "parameters": [
        {"in": place, "name": name, "description": text, "schema": _TEXT}
        for place, name, text in _TOLD_BESIDE
    ],
    "requestBody": {
        "required": True,
        "content": {"application/yaml": _BODY, _JSON: _BODY},
    },
}


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


class Why(BaseModel):
    """Why somebody wants something."""

    reason: str = ""


class Priority(BaseModel):
    """A job's new place in the queue; higher goes first."""

    priority: Int32


def routes(desk: Desk, *, token: SecretStr) -> APIRouter:
    """Make the routes, all of them behind the token."""
    router = guarded_router(token)
    _add_submit(router, desk)
    _add_changes(router, desk)
    return router


def _add_submit(router: APIRouter, desk: Desk) -> None:
    @router.post(
        "/jobs",
        status_code=201,
        responses={200: {"model": Receipt}, 201: {"model": Receipt}},
        openapi_extra=_DOCUMENTED,
    )
    async def submit(request: Request) -> JSONResponse:
        """Submit a job file. 201 for a new job, 200 when the key was used before."""
        with told():
            source = await _source_of(request)
            once = _once(request.headers.get("idempotency-key"), source)
            accepted = await desk.submit(source, by=ADMIN, once=once)
        receipt = Receipt(
            job=accepted.key.job,
            team=accepted.key.team,
            name=accepted.name,
            seq=accepted.seq,
        )
        return JSONResponse(
            receipt.model_dump(), status_code=201 if accepted.new else 200
        )

    @router.post("/jobs/validate", openapi_extra=_DOCUMENTED)
    async def validate(request: Request) -> JSONResponse:
        """Say what a job file means, and submit nothing."""
        with told():
            spec = await desk.validate(await _source_of(request), by=ADMIN)
        return JSONResponse({"spec": spec.model_dump(mode="json")})


def _add_changes(router: APIRouter, desk: Desk) -> None:
    async def change(request: requests.Request) -> Change:
        with told():
            outcome = await desk.change(request)
        job, team = request.key.job, request.key.team
        if isinstance(outcome, requests.Stored):
            return Change(job=job, team=team, changed=True, seq=outcome.seq)
        return Change(job=job, team=team, changed=False, message=outcome.message)

    @router.post("/jobs/{team}/{job}/cancel")
    async def cancel(team: str, job: str, why: Why | None = None) -> Change:
        """End a job; no attempt starts after this."""
        reason = why.reason if why else ""
        return await change(
            requests.Cancel(key=JobKey(team, JobId(job)), by=ADMIN, reason=reason)
        )

    @router.post("/jobs/{team}/{job}/hold")
    async def hold(team: str, job: str, why: Why | None = None) -> Change:
        """Keep a waiting job from being placed."""
        reason = why.reason if why else ""
        return await change(
            requests.Hold(key=JobKey(team, JobId(job)), by=ADMIN, reason=reason)
        )

    @router.post("/jobs/{team}/{job}/release")
    async def release(team: str, job: str) -> Change:
        """Let a held job be placed again."""
        return await change(requests.Release(key=JobKey(team, JobId(job)), by=ADMIN))

    @router.post("/jobs/{team}/{job}/priority")
    async def reprioritize(team: str, job: str, wanted: Priority) -> Change:
        """Move a job in the queue."""
        return await change(
            requests.Reprioritize(
                key=JobKey(team, JobId(job)), by=ADMIN, priority=wanted.priority
            )
        )


# ----------------------------------------------------------------------- job files


async def _source_of(request: Request) -> Source:
    """Take the job file out of a request, within its bounds."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != _JSON and kind not in _YAML:
        raise unsupported_type(kind)
    name = _label(request.headers.get("x-source", ""))
    directory = unquote(request.headers.get("x-source-directory", ""))
    if directory and not (isabs(directory) and directory.isprintable()):
        raise bad_request(
            what=f"X-Source-Directory {directory!r} cannot be used",
            hint="send the absolute path of the job file's folder, percent-encoded",
        )
    body = await _bounded(request)
    return Source(
        text=_text(body, name),
        name=name,
        directory=directory,
        json=kind == _JSON,
        job_name=request.query_params.get("name", ""),
    )


def _label(header: str) -> str:
    """Name the file in messages: printable, in one short line."""
    printable = "".join(c for c in unquote(header) if c.isprintable())
    return printable[:_LABEL_CHARACTERS_MAX] or "job file"


async def _bounded(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > TEXT_BYTES_MAX:
            raise too_large()
    return bytes(body)


def _text(body: bytes, name: str) -> str:
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = body[: error.start]
        fault = Fault(
            field="",
            message=f"is not UTF-8: byte 0x{body[error.start]:02x} cannot be read",
            line=before.count(b"\n") + 1,
            column=len(before) - before.rfind(b"\n"),
        )
        raise SpecRejectedError(source=name, faults=[fault]) from error


def _once(key: str | None, source: Source) -> Once | None:
    if key is None:
        return None
    if _KEY.fullmatch(key) is None:
        raise bad_request(
            what="the Idempotency-Key cannot be used",
            hint=f"send 1 to {KEY_CHARACTERS_MAX} printable ASCII characters, no blank",
        )
    return Once(key=key, digest=_digest(source))


def _digest(source: Source) -> str:
    """Name all of a request that decides what is submitted; not the file's name."""
    parts = (source.directory, source.job_name, str(source.json), source.text)
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode(errors="surrogatepass")
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return digest.hexdigest()
