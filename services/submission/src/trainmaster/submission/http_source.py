"""Decides which job file a request brings: its text, its name, what is said beside."""

import hashlib
import re
from posixpath import isabs
from typing import Any, Final
from urllib.parse import unquote

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from trainmaster.jobfile.installation import Notice
from trainmaster.jobfile.published import json_schema
from trainmaster.jobfile.reading import Source, decoded
from trainmaster.submission.desk import Once
from trainmaster.submission.problems import bad_request, too_large, unsupported_type
from trainmaster.submission.settings import KEY_CHARACTERS_MAX, TEXT_BYTES_MAX

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
    ("query", "overlay", "which of the file's `overlays` is put over the rest"),
)
# Read by hand and only documented here: a submission is what this service is fast at.
DOCUMENTED: Final[dict[str, Any]] = {
    "parameters": [
        {"in": place, "name": name, "description": text, "schema": _TEXT}
        for place, name, text in _TOLD_BESIDE
    ],
    "requestBody": {
        "required": True,
        "content": {"application/yaml": _BODY, _JSON: _BODY},
    },
}


async def source_of(request: Request) -> Source:
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
        text=decoded(body, name),
        name=name,
        directory=directory,
        json=kind == _JSON,
        job_name=request.query_params.get("name", ""),
        overlay=request.query_params.get("overlay", ""),
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


def once_of(request: Request, source: Source) -> Once | None:
    """Say what makes the request the same one when it comes again."""
    key = request.headers.get("idempotency-key")
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
    beside = (source.overlay, source.template) if source.overlay else ()
    parts = (source.directory, source.job_name, str(source.json), source.text, *beside)
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode(errors="surrogatepass")
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return digest.hexdigest()


def told_of(notice: Notice) -> dict[str, str | int]:
    """Tell what somebody should know of a file that is right."""
    line, column = notice.place
    return {
        "field": notice.field,
        "message": notice.message,
        "line": line,
        "column": column,
    }


def add_schema(router: APIRouter) -> None:
    """Let editors have the schema; it is the same for everybody."""
    schema = json_schema()

    @router.get("/job-file.schema.json")
    def job_file_schema() -> JSONResponse:
        """Describe job files as JSON Schema, for a file's `$schema`."""
        return JSONResponse(schema, media_type="application/schema+json")
