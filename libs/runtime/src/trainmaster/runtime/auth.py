"""Decides who asks over HTTP and whether they may: the gate before every route.

A route is made with `needs(Action.X)`; one without cannot be made. A path with `{team}`
is judged before anything else is read. Where the team is known only later (a job file,
a job found by name) the handler calls `caller.require`.
"""

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from typing import Any, Final

from fastapi import Depends, Request
from fastapi.openapi.models import HTTPBearer
from fastapi.security.base import SecurityBase
from pydantic import SecretStr

from trainmaster.core.ids import TokenKey
from trainmaster.core.rights import (
    EVERY_TEAM,
    RIGHTS,
    Action,
    Grant,
    Role,
    Scope,
    may,
    may_somewhere,
    roles_for,
)
from trainmaster.core.tokens import Token, digest_of, key_of
from trainmaster.runtime.auth_identity import Identities, IdentityRefusedError
from trainmaster.runtime.auth_limits import Limits
from trainmaster.runtime.clock import wall
from trainmaster.runtime.http import ProblemError

ADMIN: Final = "admin"
BODY_BYTES_MAX: Final = 1024 * 1024
_ASK_FOR_ONE: Final = "ask an admin of your team: tm tokens create NAME --team TEAM"


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks, from where, and what they are on which team."""

    subject: str
    grants: tuple[Grant, ...]
    origin: str = ""
    expires_at: datetime | None = None
    token: TokenKey | None = None

    def may(self, action: Action, team: str = "") -> bool:
        """Say whether they may do this to a team."""
        return may(self.grants, action, team)

    def sees(self, team: str) -> bool:
        """Say whether they may know of a team's jobs."""
        return may(self.grants, Action.JOB_VIEW, team)

    def require(self, action: Action, team: str = "") -> None:
        """Raise a 403 that names the missing role, unless they may."""
        if not may(self.grants, action, team):
            raise forbidden(self, action, team)

    @property
    def only_team(self) -> str:
        """The one team they belong to; "" when it is not exactly one."""
        teams = {grant.team for grant in self.grants}
        return teams.pop() if len(teams) == 1 and EVERY_TEAM not in teams else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """Lets in who shows a token. `book` is None while it is not known what it holds.

    `now` is the time by which tokens expire: the log server's, as far as known.
    """

    admin_token: SecretStr
    book: Callable[[], Mapping[TokenKey, Token] | None] = dict[TokenKey, Token]
    now: Callable[[], datetime] = wall
    oidc: Identities | None = None
    limits: Limits = field(default_factory=lambda: Limits(per_second=0, burst=1))
    trusted_proxies: frozenset[str] = frozenset()

    async def admit(self, request: Request) -> Caller:
        """Say who asks. Raises ProblemError: 401, 429, or 503 while nobody knows."""
        secret = _bearer(request.headers.get("authorization", ""))
        origin = self._origin(request)
        digest = digest_of(secret)
        if self._is_admin(digest):
            grants = (Grant(team=EVERY_TEAM, role=Role.ADMIN),)
            return Caller(subject=ADMIN, grants=grants, origin=origin)
        if self.oidc is not None and secret.count(".") == 2:  # noqa: PLR2004 - a JWT
            caller = await self._identified(self.oidc, secret, origin)
        else:
            caller = self._holder(digest, origin)
        seconds = self.limits.wait_seconds(caller.subject, time.monotonic())
        if seconds:
            raise _too_many(caller, seconds)
        return caller

    def honours(self, caller: Caller) -> bool | None:
        """Say whether somebody who was let in may stay; None while nobody knows."""
        now = self.now()
        if caller.token is not None:
            book = self.book()
            held = None if book is None else book.get(caller.token)
            return None if book is None else held is not None and held.opens(now)
        return caller.expires_at is None or now < caller.expires_at

    def _is_admin(self, digest: str) -> bool:
        expected = self.admin_token.get_secret_value()
        return bool(expected) and secrets.compare_digest(digest, digest_of(expected))

    def _holder(self, digest: str, origin: str) -> Caller:
        book = self.book()
        if book is None:
            raise ProblemError(
                status=HTTPStatus.SERVICE_UNAVAILABLE,
                detail="it is not known now which tokens were given out or revoked; "
                "ask again in a second",
                headers={"Retry-After": "1"},
            )
        key = key_of(digest)
        token = book.get(key)
        if token is None or not secrets.compare_digest(token.digest, digest):
            raise unauthorized(f"the token is not known here; {_ASK_FOR_ONE}")
        state = token.state(self.now())
        if state != "valid":
            raise unauthorized(
                f"token `{token.name}` is {state}; {_ASK_FOR_ONE}",
                by=f"token:{token.name}",
                team=token.team,
            )
        return Caller(
            subject=f"token:{token.name}",
            grants=token.grants,
            origin=origin,
            expires_at=token.expires_at,
            token=key,
        )

    async def _identified(self, oidc: Identities, secret: str, origin: str) -> Caller:
        try:
            found = await oidc.identify(secret)
        except IdentityRefusedError as error:
            raise unauthorized(str(error)) from error
        if self.now() >= found.expires_at:
            raise unauthorized("the identity token has expired; log in again")
        return Caller(
            subject=found.subject,
            grants=found.grants,
            origin=origin,
            expires_at=found.expires_at,
        )

    def _origin(self, request: Request) -> str:
        """Name the address; what a header says of it only a trusted proxy may say."""
        peer = request.client.host if request.client else ""
        if peer in self.trusted_proxies:
            told = request.headers.get("x-forwarded-for", "")
            return told.rpartition(",")[2].strip() or peer
        return peer


class Needs(SecurityBase):
    """What a route asks for; as a dependency it hands the caller to the handler."""

    def __init__(self, action: Action, *, body_bytes_max: int) -> None:
        self.action = action
        self.body_bytes_max = body_bytes_max
        self.model = HTTPBearer(description="a token of `tm tokens create`, or an OIDC")
        self.scheme_name = "bearer"

    async def __call__(self, request: Request) -> Caller:
        """Hand over whom the gate let in."""
        caller: Caller = request.state.caller
        return caller

    def judge(self, caller: Caller, path: Mapping[str, Any]) -> None:
        """Turn away who may not; with no team in the path, who may it on no team."""
        if "team" in path:
            caller.require(self.action, str(path["team"]))
        elif not may_somewhere(caller.grants, self.action):
            raise forbidden(caller, self.action, "")


def needs(action: Action, *, body_bytes_max: int = BODY_BYTES_MAX) -> Any:
    """Make what a handler declares beside its `caller`: the action, and how much."""
    return Depends(Needs(action, body_bytes_max=body_bytes_max))


def forbidden(caller: Caller, action: Action, team: str) -> ProblemError:
    """Say which role is missing where, which ones there are, and who gives one."""
    right, roles = RIGHTS[action], roles_for(action)
    of_all = right.scope is Scope.INSTALLATION
    place = EVERY_TEAM if of_all else team or caller.only_team
    where = "every team (`*`)" if of_all else f"team `{place}`" if place else "a team"
    held = ", ".join(f"{g.role} on `{g.team}`" for g in caller.grants) or "no role"
    return ProblemError(
        status=HTTPStatus.FORBIDDEN,
        detail=f"not allowed to {right.does}: it needs the role {' or '.join(roles)} "
        f"on {where}, and `{caller.subject}` has {held}; an admin gives it: "
        f"tm tokens create NAME --team '{place or 'TEAM'}' --role {roles[0]}",
        members={
            "action": action.value,
            "team": place,
            "roles_needed": [role.value for role in roles],
            "roles_held": [f"{g.team}:{g.role.value}" for g in caller.grants],
        },
    )


def unauthorized(detail: str, **known: str) -> ProblemError:
    """Say that nobody is let in so; `known` is what is known of whoever asks."""
    return ProblemError(
        status=HTTPStatus.UNAUTHORIZED,
        detail=detail,
        members=known,
        headers={"WWW-Authenticate": "Bearer"},
    )


def _too_many(caller: Caller, seconds: float) -> ProblemError:
    return ProblemError(
        status=HTTPStatus.TOO_MANY_REQUESTS,
        detail=f"`{caller.subject}` asks too often; ask again in {seconds:.1f} s, and "
        "follow (`-f`) instead of asking again and again",
        headers={"Retry-After": str(max(1, round(seconds + 0.5)))},
    )


def _bearer(header: str) -> str:
    scheme, _, secret = header.partition(" ")
    secret = secret.strip()
    if scheme.lower() != "bearer" or not secret:
        raise unauthorized(
            "send `Authorization: Bearer <token>`: `tm` finds the token of `tm up` by "
            f"itself, else set TM_TOKEN; {_ASK_FOR_ONE}"
        )
    return secret
