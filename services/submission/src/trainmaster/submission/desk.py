"""Owns the way of one request: read, key claimed, asked of the policy, answered.

The order makes every crash harmless. A key is claimed with the job's id before the job
exists; whoever repeats the request finds that id and either the job on the log or not.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final, assert_never

from ulid import ULID

from trainmaster.core.errors import (
    AlreadyExistsError,
    NotFoundError,
    PermanentError,
    TransientError,
)
from trainmaster.core.ids import TOKEN, JobId, JobKey
from trainmaster.core.rights import Action
from trainmaster.core.spec import RunAs
from trainmaster.jobfile.installation import ANYWHERE, Site
from trainmaster.jobfile.reading import Source, read
from trainmaster.jobfile.request import JobRequest
from trainmaster.runtime.auth import Caller
from trainmaster.runtime.facts import Facts
from trainmaster.submission.ports import Claim, KeyBook, Submissions
from trainmaster.submission.requests import (
    Already,
    Full,
    Impossible,
    Missing,
    NodeRequest,
    Reply,
    Request,
    Room,
    Stored,
    Submit,
    Unfit,
)
from trainmaster.submission.settings import (
    ANSWER_SECONDS,
    KEY_KNOWN_HOURS,
    LOG_SHARE_MAX,
)
from trainmaster.submission.teams import OfficeRequest

_SMALL_CHARACTERS: Final = 4096


class NotReadyError(TransientError):
    """Submission cannot take requests now."""

    def __init__(self, *, reason: str) -> None:
        super().__init__(f"submission is not ready: {reason}; try again")


class UnheardError(TransientError):
    """The log did not say in time what became of a request."""

    def __init__(self) -> None:
        super().__init__(
            f"the log did not answer within {ANSWER_SECONDS:g} s, the request may be "
            "stored or not; repeat it, with the same Idempotency-Key if it had one"
        )


class LogFullError(TransientError):
    """What is left of the log is for the jobs that are on it."""

    def __init__(self, *, room: Room) -> None:
        super().__init__(
            f"the log of jobs holds {room.used_bytes:,} of {room.most_bytes:,} bytes; "
            f"beyond {LOG_SHARE_MAX:.0%} no new job is taken, so that those on it can "
            "end. Jobs that are over leave it some days after their end; raise "
            "`max_bytes` of JOBS in deploy/nats/streams.yaml for more"
        )


class NotPossibleError(PermanentError):
    """The job's state does not allow what was asked."""

    def __init__(self, *, job: JobId, message: str) -> None:
        super().__init__(f"job {job}: {message}")


class KeyForgottenError(PermanentError):
    """Nobody can tell any more what a key was used for."""

    def __init__(self, *, key: str, job: JobId) -> None:
        super().__init__(
            f"Idempotency-Key {key!r} was used more than {KEY_KNOWN_HOURS} h ago for "
            f"job {job}, which is not on the log; submit again with a new key"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Once:
    """What makes a request the same one when it is repeated."""

    key: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A job that is on the log; `new` unless this request had been made before."""

    key: JobKey
    name: str
    seq: int
    new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Takes requests. `trouble` says why it cannot now, "" when it can."""

    facts: Facts
    keys: KeyBook
    submissions: Submissions
    user: RunAs
    trouble: Callable[[], str]
    site: Site = ANYWHERE

    async def submit(
        self, source: Source, *, by: Caller, once: Once | None
    ) -> Accepted:
        """Put a job on the log. Raises SpecRejectedError, AlreadyExistsError and more.

        With `once` the same request again finds the same job.
        """
        request = await self._read(source)
        by.require(Action.JOB_SUBMIT, request.team)
        self._check_ready()
        key = JobKey(request.team, JobId(str(ULID())))
        if once is not None:
            key, seq = await self._claim(key, once)
            if seq:
                return Accepted(key=key, name=request.spec.name, seq=seq, new=False)
        submit = Submit(
            key=key,
            by=by.subject,
            origin=by.origin,
            spec=request.spec_of(key.job, self.user),
            idempotency_key=once.key if once else "",
        )
        return await self._append(request, submit)

    async def validate(self, source: Source, *, by: Caller) -> JobRequest:
        """Say what would be submitted; `{job}` stays where the id would be."""
        request = await self._read(source)
        by.require(Action.JOB_SUBMIT, request.team)
        spec = request.spec.model_copy(update={"user": self.user})
        key = JobKey(request.team, JobId(""))
        reply = await self._ask(Submit(key=key, by=by.subject, spec=spec, dry=True))
        if isinstance(reply, Unfit):
            raise request.rejected(reply.faults)
        return replace(request, spec=spec)

    async def change(self, request: Request) -> Stored | Already:
        """Ask something of a job that exists. Raises NotFound and NotPossibleError."""
        reply = await self._ask(request)
        match reply:
            case Stored() | Already():
                return reply
            case Missing():
                raise await self._missing(request.key)
            case Impossible(message=message):
                raise NotPossibleError(job=request.key.job, message=message)
            case Unfit() | Full():
                raise NotPossibleError(job=request.key.job, message="it is not right")
            case _:
                assert_never(reply)

    async def change_node(self, request: NodeRequest) -> Stored | Already:
        """Ask something of a node. Raises NotFoundError."""
        reply = await self._ask(request)
        if isinstance(reply, Stored | Already):
            return reply
        hint = f"pool {request.key.pool} has none of this name, see `tm nodes`"
        raise NotFoundError(kind="node", name=request.key.node, hint=hint)

    async def settle(self, request: OfficeRequest) -> Reply:
        """Ask something of a team, a pool or a token."""
        return await self._ask(request)

    async def _missing(self, key: JobKey) -> NotFoundError | NotPossibleError:
        """Tell a job that never was from one that left all live state."""
        named = all(map(TOKEN.fullmatch, key))
        if named and await self.submissions.seq_of(key):
            return NotPossibleError(job=key.job, message="the job is over and archived")
        hint = f"team {key.team} has none of this id, see `tm list`"
        return NotFoundError(kind="job", name=key.job, hint=hint)

    async def _claim(self, key: JobKey, once: Once) -> tuple[JobKey, int]:
        """Claim a key: the job it stands for, and where that is on the log, or 0."""
        claimed = await self.keys.claim(
            Claim(key=once.key, digest=once.digest, team=key.team, job=key.job)
        )
        if claimed.digest != once.digest:
            raise AlreadyExistsError(
                kind="Idempotency-Key",
                name=once.key,
                hint="it was used for another request, take a new one",
            )
        if claimed.job == key.job:
            return key, 0
        before = JobKey(key.team, claimed.job)
        seq = await self.submissions.seq_of(before)
        if not seq and claimed.age > timedelta(hours=KEY_KNOWN_HOURS):
            raise KeyForgottenError(key=once.key, job=claimed.job)
        return before, seq

    async def _append(self, request: JobRequest, submit: Submit) -> Accepted:
        reply = await self._ask(submit)
        if isinstance(reply, Unfit | Full):
            if submit.idempotency_key:  # the corrected file may use the key
                await self.keys.release(submit.idempotency_key, submit.key.job)
            if isinstance(reply, Full):
                raise LogFullError(room=reply.room)
            raise request.rejected(reply.faults)
        if isinstance(reply, Stored):
            return _accepted(submit, seq=reply.seq, new=True)
        seq = await self.submissions.seq_of(submit.key)
        return _accepted(submit, seq=seq, new=False)

    async def _ask(self, request: Request | NodeRequest | OfficeRequest) -> Reply:
        """Put a request to the policy, under a name of its own, and wait."""
        self._check_ready()
        name = f"{type(request).__name__.lower()}:{request.key[-1]}:{ULID()}"
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                reply: Reply = await self.facts.ask(name, request)
        except TimeoutError as error:
            raise UnheardError from error
        return reply

    async def _read(self, source: Source) -> JobRequest:
        """Read a job file; a large one in a thread, so that nobody waits for it."""
        if len(source.text) <= _SMALL_CHARACTERS:
            return read(source, self.site)
        return await asyncio.to_thread(read, source, self.site)

    def _check_ready(self) -> None:
        reason = self.trouble()
        if reason:
            raise NotReadyError(reason=reason)


def _accepted(submit: Submit, *, seq: int, new: bool) -> Accepted:
    return Accepted(key=submit.key, name=submit.spec.name, seq=seq, new=new)
