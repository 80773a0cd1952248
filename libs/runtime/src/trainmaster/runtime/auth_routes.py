"""Owns the way of a request through the gate to its handler, and back.

A router made here lets nobody in whom the gate does not know, reads no more of a body
than its route allows, tells every error as a problem and records every refusal. A
service needs no application of its own for that.
"""

from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Any, ClassVar, Final, Protocol

from fastapi import APIRouter, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from prometheus_client import Counter
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive
from typing_extensions import override

from trainmaster.core.access import Refusal
from trainmaster.core.errors import PermanentError, TrainmasterError
from trainmaster.core.ids import TokenKey
from trainmaster.core.tokens import Token
from trainmaster.runtime.auth import Caller, Gate, Needs
from trainmaster.runtime.auth_audit import Refusals
from trainmaster.runtime.auth_identity import Identities
from trainmaster.runtime.auth_limits import Limits
from trainmaster.runtime.clock import wall
from trainmaster.runtime.http import ProblemError, problem_of, problem_response
from trainmaster.runtime.service import Env
from trainmaster.runtime.settings import OidcSettings
from trainmaster.runtime.telemetry import logger

_REFUSALS: Final = frozenset({401, 403, 413, 429})
_DEAF_SECONDS: Final = 30.0
"""How long a token is believed while the log, and so a revocation, is not heard."""
_Handler = Callable[[Request], Coroutine[Any, Any, Response]]
_Report = Callable[[Refusal, str], None]


class UndeclaredRouteError(PermanentError):
    """A route does not say what it is, so nobody can say who may use it."""

    def __init__(self, *, path: str) -> None:
        super().__init__(
            f"route {path} declares no action; add a parameter "
            "`caller: Annotated[Caller, needs(Action.…)]` to its handler"
        )


class HoldsTokens(Protocol):
    """A service's state that folds the facts about tokens."""

    @property
    def tokens(self) -> dict[TokenKey, Token]:
        """Every token that was given out."""
        ...


def _nobody(_refusal: Refusal, _team: str) -> None:
    return


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """Who is let in, and who is told of those that are not, and of which team."""

    gate: Gate
    report: _Report = _nobody


class GuardedRoute(APIRoute):
    """A route behind a gate. Each router has its own subclass, with its own gate."""

    guard: ClassVar["Guard"]

    @override
    def get_route_handler(self) -> _Handler:
        handle, needs, guard = super().get_route_handler(), needs_of(self), self.guard
        if needs is None:
            raise UndeclaredRouteError(path=self.path)

        async def answer(request: Request) -> Response:
            try:
                caller = await guard.gate.admit(request)
                request.state.caller = caller
                needs.judge(caller, request.path_params)
                return await handle(_bounded(request, needs.body_bytes_max))
            except (RequestValidationError, HTTPException, TrainmasterError) as error:
                problem = problem_of(error)
                if problem.status in _REFUSALS:
                    guard.report(*_refusal(problem, request, needs))
                return problem_response(problem)

        return answer


def guarded_router(guard: Guard) -> APIRouter:
    """Make a router whose routes are all guarded."""
    return APIRouter(route_class=type("Guarded", (GuardedRoute,), {"guard": guard}))


def needs_of(route: APIRoute) -> Needs | None:
    """Find what a route declares; None when it declares nothing."""
    return next(_needs(route.dependant), None)


def _needs(dependant: Dependant) -> Iterator[Needs]:
    if isinstance(dependant.call, Needs):
        yield dependant.call
    for each in dependant.dependencies:
        yield from _needs(each)


def _bounded(request: Request, bytes_max: int) -> Request:
    """Read no more than so many bytes of a body, whatever its header says of it."""
    told = request.headers.get("content-length", "")
    if told.isdecimal() and int(told) > bytes_max:
        raise _too_large(bytes_max)
    receive, seen = request.receive, 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > bytes_max:
            raise _too_large(bytes_max)
        return message

    bounded: Receive = counted
    return Request(request.scope, bounded)


def _too_large(bytes_max: int) -> HTTPException:
    # FastAPI lets only this kind through while it reads a body.
    return HTTPException(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        f"the body has more than {bytes_max:,} bytes; send less at once",
    )


def _refusal(
    problem: ProblemError, request: Request, needs: Needs
) -> tuple[Refusal, str]:
    caller: Caller | None = getattr(request.state, "caller", None)
    peer = request.client.host if request.client else ""
    refusal = Refusal(
        by=caller.subject if caller else str(problem.members.get("by", "")),
        origin=caller.origin if caller else peer,
        action=needs.action.value,
        request=f"{request.method} {request.url.path}",
        status=problem.status.value,
        reason=str(problem),
    )
    team = request.path_params.get("team") or problem.members.get("team") or ""
    return refusal, str(team)


# ---------------------------------------------------------------- a service's own gate


class Door:
    """Makes one service's guard, with refusals on the log; `watch` runs as a task."""

    def __init__(self, env: Env, refused: type[Refusal]) -> None:
        settings = env.settings
        self._env = env
        self._logger = logger(env.name)
        self._refusals = Refusals(refused, env.log.say)
        self._count = Counter(
            "tm_http_refused",
            "Requests that were not let through",
            ["status"],
            registry=env.metrics.registry,
        )
        self.watch: Callable[[], Awaitable[None]] = self._refusals.run
        gate = Gate(
            admin_token=settings.admin_token,
            book=self._book,
            now=self._now,
            oidc=None if settings.oidc is None else _provider(settings.oidc),
            limits=Limits(
                per_second=settings.requests_per_second, burst=settings.requests_burst
            ),
            trusted_proxies=frozenset(settings.trusted_proxies),
        )
        self.guard = Guard(gate=gate, report=self._report)

    def _book(self) -> dict[TokenKey, Token] | None:
        loop = self._env.loop
        if loop is None or not loop.caught_up.is_set():
            return None
        if any(reader.silent_seconds > _DEAF_SECONDS for reader in loop.readers):
            return None
        state: HoldsTokens = loop.state
        return state.tokens

    def _now(self) -> datetime:
        loop = self._env.loop
        return wall() if loop is None else loop.clock.now()

    def _report(self, refusal: Refusal, team: str) -> None:
        self._count.labels(status=str(refusal.status)).inc()
        self._logger.info("request_refused", team=team, **refusal.model_dump())
        self._refusals.add(refusal, team=team)


def _provider(settings: OidcSettings) -> Identities:
    # Cryptography costs memory and time that only an installation with OIDC pays.
    from trainmaster.runtime.auth_oidc import Oidc  # noqa: PLC0415

    return Oidc(settings)
