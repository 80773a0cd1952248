"""Owns the questions a program may put to Trainmaster.

Answers are plain dictionaries (`shapes`), errors are ours (`errors`). Asking is safe to
repeat: a submission carries a key, so that a lost answer never makes a second job.
"""

import itertools
import json
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any, Final, Literal, Self, cast
from urllib.parse import quote

import httpx

from trainmaster.client.credentials import Credentials
from trainmaster.client.errors import NotReadyError, UnheardError
from trainmaster.client.office import Office
from trainmaster.client.shapes import (
    Change,
    JobDetails,
    JobEvent,
    JobRow,
    LogChunk,
    NodeChange,
    NodeRow,
    Receipt,
)
from trainmaster.client.unseen import Unseen
from trainmaster.client.wire import AGAIN_SECONDS, Manner, Wire
from trainmaster.core.errors import UnreachableError

Verb = Literal["cancel", "hold", "release"]
NodeVerb = Literal["drain", "undrain"]
_PREFIX: Final = "/api/v1"
_LEAST_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFile:
    """A job file as it is on disk, unread; its paths are those of its folder."""

    content: bytes
    name: str = "job file"
    directory: str = ""
    json: bool = False
    job_name: str = ""

    def headers(self) -> dict[str, str]:
        """Say what this is; names may hold any character, so they are escaped."""
        kind = "application/json" if self.json else "application/yaml"
        return {
            "Content-Type": kind,
            "X-Source": quote(self.name),
            "X-Source-Directory": quote(self.directory),
        }

    def parameters(self) -> dict[str, str]:
        """Say what is not in the file."""
        return {"name": self.job_name} if self.job_name else {}


class Client:
    """A server, asked one question after the other; safe to share between threads."""

    def __init__(
        self,
        credentials: Credentials,
        *,
        transport: httpx.BaseTransport | None = None,
        manner: Manner | None = None,
    ) -> None:
        self._manner = manner or Manner()
        self._wire = Wire(credentials, transport=transport, manner=self._manner)
        self.office = Office(self._wire)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._wire.close()

    @property
    def url(self) -> str:
        """Where the server is."""
        return self._wire.url

    @property
    def server_time(self) -> datetime | None:
        """What time it was at the server when it last answered."""
        return self._wire.server_time

    def submit(self, file: JobFile, *, key: str = "") -> Receipt:
        """Submit a job file. Raises SpecRejectedError with every fault.

        Tried again when no answer comes, under one key, so at most one job results.
        """
        key = key or uuid.uuid4().hex
        end = time.monotonic() + self._manner.submit_seconds
        waits = itertools.chain(AGAIN_SECONDS, itertools.repeat(AGAIN_SECONDS[-1]))
        for tries, wait in enumerate(waits):
            left = max(_LEAST_SECONDS, end - time.monotonic())
            try:
                return self._submit(file, key, seconds=left)
            except (NotReadyError, UnreachableError) as error:
                if isinstance(error.__cause__, httpx.ConnectError):
                    raise  # nobody listens there, and nothing was sent
                if time.monotonic() + wait >= end:
                    raise UnheardError(why=str(error), key=key) from error
                if not tries:
                    self._manner.told(f"{error}. Trying again …")
            time.sleep(wait)
        raise AssertionError  # waits has no end

    def _submit(self, file: JobFile, key: str, *, seconds: float) -> Receipt:
        answer = self._wire.ask(
            "POST",
            f"{_PREFIX}/jobs",
            content=file.content,
            headers=file.headers() | {"Idempotency-Key": key},
            params=file.parameters(),
            timeout=seconds,
        )
        return cast("Receipt", answer.json())

    def validate(self, file: JobFile) -> dict[str, Any]:
        """Say what a job file means; submits nothing. Raises SpecRejectedError."""
        answer = self._wire.ask(
            "POST",
            f"{_PREFIX}/jobs/validate",
            content=file.content,
            headers=file.headers(),
            params=file.parameters(),
        )
        return cast("dict[str, Any]", answer.json()["spec"])

    def change(self, verb: Verb, team: str, job: str, *, reason: str = "") -> Change:
        """Cancel, hold or release a job; asking again changes nothing."""
        body = {"reason": reason} if reason else {}
        path = f"{_PREFIX}/jobs/{quote(team)}/{quote(job)}/{verb}"
        return cast("Change", self._wire.ask("POST", path, json=body).json())

    def ready(self) -> dict[str, str]:
        """Say of each service whether it is ready, or why not."""
        answer = self._wire.send("GET", "/readyz")
        return cast("dict[str, str]", answer.json())

    def jobs(self, *, team: str = "", state: str = "", limit: int = 0) -> list[JobRow]:
        """List jobs."""
        wanted = {"team": team, "state": state, "limit": limit}
        params = {name: value for name, value in wanted.items() if value}
        answer = self._wire.ask("GET", f"{_PREFIX}/jobs", params=params)
        return cast("list[JobRow]", answer.json()["jobs"])

    def job(self, reference: str) -> JobDetails:
        """Find a job by its id, a unique prefix of it, or its name."""
        answer = self._wire.ask("GET", _job_path(reference))
        return cast("JobDetails", answer.json())

    def nodes(self) -> list[NodeRow]:
        """List nodes."""
        answer = self._wire.ask("GET", f"{_PREFIX}/nodes")
        return cast("list[NodeRow]", answer.json()["nodes"])

    def change_node(
        self, verb: NodeVerb, pool: str, node: str, *, reason: str = ""
    ) -> NodeChange:
        """Drain a node or use it again; asking again changes nothing."""
        body = {"reason": reason} if reason else {}
        path = f"{_PREFIX}/nodes/{quote(pool)}/{quote(node)}/{verb}"
        return cast("NodeChange", self._wire.ask("POST", path, json=body).json())

    def events(self, reference: str, *, after: int = 0) -> list[JobEvent]:
        """List what happened to a job."""
        path = f"{_job_path(reference)}/events"
        answer = self._wire.ask("GET", path, params={"after": after})
        return cast("list[JobEvent]", answer.json())

    def logs(
        self, reference: str, *, attempt: int | None = None, rank: int | None = None
    ) -> str:
        """Read the output there is, of one attempt or rank or of all."""
        params = _given(attempt=attempt, rank=rank)
        return self._wire.ask("GET", f"{_job_path(reference)}/logs", params=params).text

    def follow_events(self, reference: str, *, after: int = 0) -> Iterator[JobEvent]:
        """Yield what happened and what happens; goes on after a lost connection."""
        path = f"{_job_path(reference)}/events"
        params = {"after": str(after), "follow": "true"}
        for told in self._wire.follow(path, params):
            event: JobEvent = json.loads(told.data)
            params["after"] = str(event["seq"])
            yield event

    def follow_logs(
        self, reference: str, *, attempt: int | None = None, rank: int | None = None
    ) -> Iterator[LogChunk]:
        """Yield output as it comes, of one attempt or rank or of all."""
        params = _given(attempt=attempt, rank=rank) | {"follow": "true"}
        unseen = Unseen()
        for told in self._wire.follow(f"{_job_path(reference)}/logs", params):
            yield from unseen.part_of(json.loads(told.data))


def _job_path(reference: str) -> str:
    return f"{_PREFIX}/jobs/{quote(reference, safe='')}"


def _given(**wanted: int | None) -> dict[str, str]:
    return {name: str(value) for name, value in wanted.items() if value is not None}
