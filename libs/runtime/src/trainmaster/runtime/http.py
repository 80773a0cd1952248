"""What every HTTP surface shares: how an error is told.

Errors are `application/problem+json` (RFC 9457). Who may ask is decided in `auth`.
"""

from collections.abc import Mapping
from dataclasses import asdict
from http import HTTPStatus
from typing import Any, Final

from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

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


def problem_of(
    error: TrainmasterError | RequestValidationError | HTTPException,
) -> ProblemError:
    """Say how anything that ends a request early is told."""
    if isinstance(error, RequestValidationError):
        return _invalid(error)
    if isinstance(error, HTTPException):
        return ProblemError(
            status=HTTPStatus(error.status_code),
            detail=str(error.detail),
            headers=error.headers or _NO_MEMBERS,
        )
    return as_problem(error)


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
