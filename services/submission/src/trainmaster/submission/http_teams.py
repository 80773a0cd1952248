"""Owns the routes of teams, pools and tokens that change something.

They are read from the console. A token's secret is made here and told once: only its
digest is kept, on the log.
"""

import re
import secrets
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Response
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints

from trainmaster.core.errors import NotFoundError
from trainmaster.core.ids import TOKEN, PoolKey, TeamKey, TokenKey, token
from trainmaster.core.model import Int32
from trainmaster.core.rights import EVERY_TEAM, Action, Grant, Role
from trainmaster.core.teams import Quota
from trainmaster.core.tokens import SECRET_PREFIX, digest_of, key_of
from trainmaster.runtime.auth import Caller, needs
from trainmaster.runtime.clock import wall
from trainmaster.runtime.http import ProblemError
from trainmaster.submission import teams
from trainmaster.submission.desk import Desk
from trainmaster.submission.requests import Already, Impossible, Stored
from trainmaster.submission.settings import (
    PORT_NUMBER_MAX,
    PORT_NUMBER_MIN,
    TOKEN_DAYS_DEFAULT,
    TOKEN_DAYS_MAX,
)

_SECRET_BYTES: Final = 32
_DAY_SECONDS: Final = 86_400
_Name = Annotated[str, StringConstraints(pattern=f"^{TOKEN.pattern}$")]
_EVERY: Final = re.escape(EVERY_TEAM)
_TeamOrAll = Annotated[str, StringConstraints(pattern=f"^({TOKEN.pattern}|{_EVERY})$")]
_Backend = Literal["process", "docker", "slurm", "kubernetes"]
_Port = Annotated[int, Field(ge=PORT_NUMBER_MIN, le=PORT_NUMBER_MAX)] | Literal[0]
_Reason = Annotated[str, StringConstraints(max_length=1000)]


class _Body(BaseModel):
    """A body whose fields must be known: a misspelled one is not passed over."""

    model_config = ConfigDict(extra="forbid")


class NewTeam(_Body):
    """A team to be."""

    team: _Name
    parent: _Name | Literal[""] = ""


class Pause(_Body):
    """How long; without an end, until it is resumed."""

    until: AwareDatetime | None = None


class QuotaOf(_Body):
    """How much of one pool; -1 is no limit."""

    pool: _Name
    accelerators: Annotated[Int32, Field(ge=-1)]
    borrowing: Annotated[Int32, Field(ge=0)] = 0


class NewPool(_Body):
    """A pool to be."""

    pool: _Name
    backend: _Backend = "process"
    port_first: _Port = 0
    port_last: _Port = 0


class PoolChange(_Body):
    """What is to be different; what is left out stays."""

    backend: _Backend | None = None
    port_first: _Port | None = None
    port_last: _Port | None = None


class NewToken(_Body):
    """A token to be given out."""

    name: _Name
    team: _TeamOrAll
    role: Role
    expires_in_seconds: Annotated[
        float, Field(gt=0, le=TOKEN_DAYS_MAX * _DAY_SECONDS)
    ] = TOKEN_DAYS_DEFAULT * _DAY_SECONDS


class Revocation(_Body):
    """Why."""

    reason: _Reason = ""


class Done(BaseModel):
    """What became of a request; `seq` is 0 when it was so already."""

    name: str
    changed: bool
    seq: int = 0
    message: str = ""


class GivenToken(BaseModel):
    """A token that was given out. `token` is its secret, told only here."""

    id: str
    name: str
    team: str
    role: Role
    expires_at: datetime
    token: str
    seq: int


def add_office(router: APIRouter, desk: Desk) -> None:
    """Add the routes of teams, pools and tokens."""
    _add_teams(router, desk)
    _add_pools(router, desk)
    _add_tokens(router, desk)


def _add_teams(router: APIRouter, desk: Desk) -> None:
    @router.post("/teams")
    async def create_team(
        wanted: NewTeam, caller: Annotated[Caller, needs(Action.TEAM_CREATE)]
    ) -> Done:
        """Create a team; asking again changes nothing."""
        key = TeamKey(wanted.team)
        request = teams.CreateTeam(key=key, parent=wanted.parent, **_who(caller))
        return await _settled(desk, request)

    @router.post("/teams/{team}/pause")
    async def pause_team(
        team: str,
        caller: Annotated[Caller, needs(Action.TEAM_PAUSE)],
        pause: Pause | None = None,
    ) -> Done:
        """Place none of a team's jobs for a while; those that run go on."""
        until = pause.until if pause else None
        key = TeamKey(token("team", team))
        request = teams.PauseTeam(key=key, paused=True, until=until, **_who(caller))
        return await _settled(desk, request)

    @router.post("/teams/{team}/resume")
    async def resume_team(
        team: str, caller: Annotated[Caller, needs(Action.TEAM_PAUSE)]
    ) -> Done:
        """Place a team's jobs again."""
        key = TeamKey(token("team", team))
        return await _settled(
            desk, teams.PauseTeam(key=key, paused=False, **_who(caller))
        )

    @router.post("/teams/{team}/quota")
    async def set_quota(
        team: str,
        wanted: QuotaOf,
        caller: Annotated[Caller, needs(Action.TEAM_SET_QUOTA)],
    ) -> Done:
        """Bound how many accelerators of a pool a team may hold."""
        quota = Quota(accelerators=wanted.accelerators, borrowing=wanted.borrowing)
        key = TeamKey(token("team", team))
        request = teams.SetQuota(key=key, pool=wanted.pool, quota=quota, **_who(caller))
        return await _settled(desk, request)


def _add_pools(router: APIRouter, desk: Desk) -> None:
    @router.post("/pools")
    async def create_pool(
        wanted: NewPool, caller: Annotated[Caller, needs(Action.POOL_CREATE)]
    ) -> Done:
        """Create a pool; asking again changes nothing."""
        request = teams.CreatePool(
            key=PoolKey(wanted.pool),
            backend=wanted.backend,
            port_first=wanted.port_first,
            port_last=wanted.port_last,
            **_who(caller),
        )
        return await _settled(desk, request)

    @router.post("/pools/{pool}/change")
    async def change_pool(
        pool: str,
        wanted: PoolChange,
        caller: Annotated[Caller, needs(Action.POOL_CHANGE)],
    ) -> Done:
        """Change a pool's settings; nodes take them over for the next attempt."""
        request = teams.ChangePool(
            key=PoolKey(token("pool", pool)),
            backend=wanted.backend,
            port_first=wanted.port_first,
            port_last=wanted.port_last,
            **_who(caller),
        )
        return await _settled(desk, request)


def _add_tokens(router: APIRouter, desk: Desk) -> None:
    @router.post("/tokens", status_code=HTTPStatus.CREATED)
    async def create_token(
        wanted: NewToken,
        response: Response,
        caller: Annotated[Caller, needs(Action.TOKEN_CREATE)],
    ) -> GivenToken:
        """Give out a token. Its secret is in this answer and nowhere else."""
        caller.require(Action.TOKEN_CREATE, wanted.team)
        secret = SECRET_PREFIX + secrets.token_urlsafe(_SECRET_BYTES)
        digest = digest_of(secret)
        expires_at = wall() + timedelta(seconds=wanted.expires_in_seconds)
        request = teams.IssueToken(
            key=key_of(digest),
            digest=digest,
            name=wanted.name,
            grant=Grant(team=wanted.team, role=wanted.role),
            expires_at=expires_at,
            **_who(caller),
        )
        done = await _settled(desk, request)
        response.headers["Cache-Control"] = "no-store"
        return GivenToken(
            id=request.key.token,
            name=wanted.name,
            team=wanted.team,
            role=wanted.role,
            expires_at=expires_at,
            token=secret,
            seq=done.seq,
        )

    @router.post("/tokens/{token_id}/revoke")
    async def revoke_token(
        token_id: str,
        caller: Annotated[Caller, needs(Action.TOKEN_REVOKE)],
        why: Revocation | None = None,
    ) -> Done:
        """Let nobody in with a token any more, from now on and everywhere."""
        request = teams.RevokeToken(
            key=TokenKey(token("token", token_id)),
            grants=caller.grants,
            reason=why.reason if why else "",
            **_who(caller),
        )
        return await _settled(desk, request)


def _who(caller: Caller) -> dict[str, Any]:
    return {"by": caller.subject, "origin": caller.origin}


async def _settled(desk: Desk, request: teams.OfficeRequest) -> Done:
    """Have it done. Raises NotFoundError, and ProblemError 409."""
    name = str(request.key[0])
    kind = type(request.key).__name__.removesuffix("Key").lower()
    match await desk.settle(request):
        case Stored(seq=seq):
            return Done(name=name, changed=True, seq=seq)
        case Already(message=message):
            return Done(name=name, changed=False, message=message)
        case Impossible(message=message):
            raise ProblemError(status=HTTPStatus.CONFLICT, detail=message)
        case _:
            raise NotFoundError(kind=kind, name=name, hint=f"see `tm {kind}s list`")
