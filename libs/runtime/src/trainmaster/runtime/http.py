"""What every HTTP surface shares: who may ask, and how an error is told.

Errors are `application/problem+json` (RFC 9457). The routes of a router made here tell
them by themselves, so a service needs no application of its own for that.
"""

import secrets
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import asdict
from http import HTTPStatus
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import SecretStr
from typing_extensions import override

from trainmaster.core.errors import (
    AlreadyExistsError,
    InvalidTokenError,
    NotAllowedError,
    NotFoundError,
    PermanentError,
    SpecRejectedError,
    TrainmasterError,
    TransientError,
)

PROBLEM_TYPE: Final = "application/problem+json"
_BEARER: Final = HTTPBearer(auto_error=False, description="the token of `tm up`")
_NO_MEMBERS: Final[Mapping[str, Any]] = {}


class ProblemError(PermanentError):
    """A request cannot be answered as it was meant.

    `members` are further fields of the answer, such as the candidates of a name.
    """

    def __init__(
        self,
        *,
        status: HTTPStatus,
        detail: str,
        members: Mapping[str, Any] = _NO_MEMBERS,
        headers: Mapping[str, str] = _NO_MEMBERS,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.members = dict(members)
        self.headers = dict(headers)


class ProblemRoute(APIRoute):
    """A route whose errors are told as problems."""

    @override
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def tell(request: Request) -> Response:
            try:
                return await handle(request)
            except RequestValidationError as error:
                return problem_response(_invalid(error))
            except TrainmasterError as error:
                return problem_response(as_problem(error))

        return tell


def guarded_router(token: SecretStr) -> APIRouter:
    """Make a router that lets nobody in without the token and tells problems."""
    return APIRouter(
        route_class=ProblemRoute, dependencies=[Depends(require_token(token))]
    )


def require_token(
    token: SecretStr,
) -> Callable[[HTTPAuthorizationCredentials | None], Awaitable[None]]:
    """Make a dependency that asks for a bearer token; an empty one opens nothing."""
    expected = token.get_secret_value().encode()

    async def check(
        given: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)],
    ) -> None:
        if not expected:
            raise _unauthorized("this service was given no token; set TM_ADMIN_TOKEN")
        if given is None:
            raise _unauthorized("send `Authorization: Bearer <token>`")
        if not secrets.compare_digest(given.credentials.encode(), expected):
            raise _unauthorized("the token is not the right one; `tm up` writes it")

    return check


def as_problem(error: TrainmasterError) -> ProblemError:
    """Say with which status an error of ours is told."""
    if isinstance(error, ProblemError):
        return error
    kinds = (kind for kind in _STATUS if isinstance(error, kind))
    status = _STATUS[next(kinds, PermanentError)]
    members: dict[str, Any] = {}
    if isinstance(error, SpecRejectedError):
        members["errors"] = [asdict(fault) for fault in error.faults]
    headers = {"Retry-After": "1"} if isinstance(error, TransientError) else {}
    return ProblemError(
        status=status, detail=str(error), members=members, headers=headers
    )


def problem_response(problem: ProblemError) -> JSONResponse:
    """Write a problem down."""
    return JSONResponse(
        {
            "type": "about:blank",
            "title": problem.status.phrase,
            "status": problem.status.value,
            "detail": str(problem),
            **problem.members,
        },
        status_code=problem.status.value,
        headers=problem.headers,
        media_type=PROBLEM_TYPE,
    )


_STATUS: Final[Mapping[type[TrainmasterError], HTTPStatus]] = {
    SpecRejectedError: HTTPStatus.UNPROCESSABLE_ENTITY,
    InvalidTokenError: HTTPStatus.UNPROCESSABLE_ENTITY,
    NotAllowedError: HTTPStatus.FORBIDDEN,
    NotFoundError: HTTPStatus.NOT_FOUND,
    AlreadyExistsError: HTTPStatus.CONFLICT,
    TransientError: HTTPStatus.SERVICE_UNAVAILABLE,
    PermanentError: HTTPStatus.INTERNAL_SERVER_ERROR,
}
"""The first kind that fits decides."""


def _unauthorized(detail: str) -> ProblemError:
    return ProblemError(
        status=HTTPStatus.UNAUTHORIZED,
        detail=detail,
        headers={"WWW-Authenticate": "Bearer"},
    )


def _invalid(error: RequestValidationError) -> ProblemError:
    """Name every wrong parameter by its path."""
    faults = [
        {"field": ".".join(map(str, each["loc"])), "message": str(each["msg"])}
        for each in error.errors()
    ]
    detail = "; ".join(f"`{fault['field']}`: {fault['message']}" for fault in faults)
    return ProblemError(
        status=HTTPStatus.UNPROCESSABLE_ENTITY,
        detail=detail,
        members={"errors": faults},
    )
