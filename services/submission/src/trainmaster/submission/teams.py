"""Decides what becomes of a request about a team, a pool or a token. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from typing_extensions import override

from trainmaster.core.access import TokenIssued, TokenRevoked
from trainmaster.core.events import Event
from trainmaster.core.facts import (
    PoolChanged,
    PoolCreated,
    QuotaSet,
    TeamCreated,
    TeamPaused,
)
from trainmaster.core.ids import Key, PoolKey, TeamKey, TokenKey
from trainmaster.core.rights import EVERY_TEAM, Action, Grant, may
from trainmaster.core.teams import Pool, Quota
from trainmaster.submission.requests import Already, Impossible, Missing, Reply
from trainmaster.submission.state import State


@dataclass(frozen=True, slots=True, kw_only=True)
class OfficeRequest:
    """Something asked of a team, a pool or a token by somebody."""

    key: TeamKey | PoolKey | TokenKey
    by: str = ""
    origin: str = ""

    @property
    def moves(self) -> Key:
        """What changes with it: no other request that changes it is judged then."""
        return self.key


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTeam(OfficeRequest):
    """Let there be a team, below another or at the top."""

    key: TeamKey
    parent: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseTeam(OfficeRequest):
    """Place no jobs of the team, until a time or until it is resumed."""

    key: TeamKey
    paused: bool
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetQuota(OfficeRequest):
    """Bound what a team holds of a pool."""

    key: TeamKey
    pool: str
    quota: Quota


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatePool(OfficeRequest):
    """Let there be a pool."""

    key: PoolKey
    backend: str
    port_first: int
    port_last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePool(OfficeRequest):
    """Change a pool; None leaves as it is."""

    key: PoolKey
    backend: str | None = None
    port_first: int | None = None
    port_last: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueToken(OfficeRequest):
    """Let in whoever holds the secret of this digest."""

    key: TokenKey
    digest: str
    name: str
    grant: Grant
    expires_at: datetime

    @property
    @override
    def moves(self) -> Key:
        return _ALL_NAMES


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeToken(OfficeRequest):
    """Let nobody in with this token; `grants` are those of whoever asks."""

    key: TokenKey
    grants: tuple[Grant, ...]
    reason: str = ""


_ALL_NAMES: Final = TokenKey("")
"""Names are taken one after the other, so that two tokens never get the same one."""


def judged(state: State, request: OfficeRequest, now: datetime) -> Event | Reply:
    """Say which event a request becomes, or why it becomes none."""
    return _JUDGES[type(request)](state, request, now)


def _create_team(state: State, request: CreateTeam, _now: datetime) -> Event | Reply:
    known = state.teams.get(request.key)
    if known is not None and known.parent == request.parent:
        return Already(message="there is such a team")
    if known is not None:
        place = f"below `{known.parent}`" if known.parent else "at the top"
        return Impossible(message=f"there is a team of this name already, {place}")
    if request.parent and TeamKey(request.parent) not in state.teams:
        return Impossible(message=f"no team is called `{request.parent}`")
    return TeamCreated(by=request.by, origin=request.origin, parent=request.parent)


def _pause_team(state: State, request: PauseTeam, _now: datetime) -> Event | Reply:
    team = state.teams.get(request.key)
    if team is None:
        return Missing()
    if (team.paused, team.until) == (request.paused, request.until):
        return Already(message="it is paused" if team.paused else "it is not paused")
    return TeamPaused(
        by=request.by,
        origin=request.origin,
        paused=request.paused,
        until=request.until,
    )


def _set_quota(state: State, request: SetQuota, _now: datetime) -> Event | Reply:
    team = state.teams.get(request.key)
    if team is None:
        return Missing()
    if PoolKey(request.pool) not in state.pools:
        return Impossible(message=f"no pool is called `{request.pool}`")
    if team.quotas.get(request.pool) == request.quota:
        return Already(message="that is its quota")
    return QuotaSet(
        by=request.by,
        origin=request.origin,
        pool=request.pool,
        accelerators=request.quota.accelerators,
        borrowing=request.quota.borrowing,
    )


def _create_pool(state: State, request: CreatePool, _now: datetime) -> Event | Reply:
    known = state.pools.get(request.key)
    wanted = (request.backend, request.port_first, request.port_last)
    if known is not None and _settings(known) == wanted:
        return Already(message="there is such a pool")
    if known is not None:
        return Impossible(
            message="there is a pool of this name already; `tm pools change` changes it"
        )
    return _ports(request.port_first, request.port_last) or PoolCreated(
        by=request.by,
        origin=request.origin,
        backend=request.backend,
        port_first=request.port_first,
        port_last=request.port_last,
    )


def _change_pool(state: State, request: ChangePool, _now: datetime) -> Event | Reply:
    known = state.pools.get(request.key)
    if known is None:
        return Missing()
    backend = known.backend if request.backend is None else request.backend
    first = known.port_first if request.port_first is None else request.port_first
    last = known.port_last if request.port_last is None else request.port_last
    if (backend, first, last) == _settings(known):
        return Already(message="it is so")
    return _ports(first, last) or PoolChanged(
        by=request.by,
        origin=request.origin,
        backend=backend,
        port_first=first,
        port_last=last,
    )


def _settings(pool: Pool) -> tuple[str, int, int]:
    return pool.backend, pool.port_first, pool.port_last


def _ports(first: int, last: int) -> Impossible | None:
    if first == last == 0 or 0 < first <= last:
        return None
    return Impossible(
        message=f"ports {first} to {last} are no range; give both, the lower one "
        "first, or 0 and 0 for the platform's choice"
    )


def _issue(state: State, request: IssueToken, now: datetime) -> Event | Reply:
    team = request.grant.team
    if team != EVERY_TEAM and TeamKey(team) not in state.teams:
        return Impossible(message=f"no team is called `{team}`")
    if request.key in state.tokens:
        return Impossible(message="this secret was given out before; ask again")
    names = {t.name for t in state.tokens.values() if t.opens(now)}
    if request.name in names:
        return Impossible(
            message=f"a token is called `{request.name}` already; revoke it first "
            f"(tm tokens revoke {request.name}) or take another name"
        )
    return TokenIssued(
        digest=request.digest,
        name=request.name,
        team=team,
        role=request.grant.role.value,
        expires_at=request.expires_at,
        by=request.by,
        origin=request.origin,
    )


def _revoke(state: State, request: RevokeToken, _now: datetime) -> Event | Reply:
    token = state.tokens.get(request.key)
    if token is None or not may(request.grants, Action.TOKEN_REVOKE, token.team):
        return Missing()  # whoever may not see it learns nothing of it
    if token.revoked_at is not None:
        return Already(message="it is revoked")
    return TokenRevoked(by=request.by, origin=request.origin, reason=request.reason)


_Judge = Callable[[State, Any, datetime], Event | Reply]
_JUDGES: Final[Mapping[type[OfficeRequest], _Judge]] = {
    CreateTeam: _create_team,
    PauseTeam: _pause_team,
    SetQuota: _set_quota,
    CreatePool: _create_pool,
    ChangePool: _change_pool,
    IssueToken: _issue,
    RevokeToken: _revoke,
}
