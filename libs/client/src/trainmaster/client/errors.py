"""What a server may answer instead of what was asked for.

* ProblemError              permanent: again cannot help
  + InvalidError            the request itself is wrong (400, 413, 415, 422)
  + ForbiddenError          not with this token (401, 403)
  + MissingError            nothing has this id or name (404)
  + ConflictError           not in this state, or the name is not clear (409)
  + ServerError             the server made a mistake (500 and what we do not know)
* NotReadyError             transient: not yet (429, 502, 503, 504)
  + UnheardError            nobody said what became of a submission

A job file with faults is a `SpecRejectedError`, and no answer at all an
`UnreachableError`, both of `trainmaster.core.errors`.
"""

from collections.abc import Mapping
from typing import Any, Final

from trainmaster.core.errors import (
    Fault,
    PermanentError,
    SpecRejectedError,
    TrainmasterError,
    TransientError,
)


class ProblemError(PermanentError):
    """The server refused; `members` is all it said."""

    def __init__(self, *, status: int, detail: str, members: Mapping[str, Any]) -> None:
        super().__init__(detail)
        self.status = status
        self.members = dict(members)


class InvalidError(ProblemError):
    """The request itself is wrong."""


class ForbiddenError(ProblemError):
    """The token does not allow this."""


class MissingError(ProblemError):
    """Nothing has this id or name."""


class ConflictError(ProblemError):
    """What is there does not allow this."""


class ServerError(ProblemError):
    """The server made a mistake."""


class NotReadyError(TransientError):
    """The server cannot answer yet."""


class UnheardError(NotReadyError):
    """A submission was tried until the time was over."""

    def __init__(self, *, why: str, key: str) -> None:
        super().__init__(
            f"{why}. The job may be stored or not; submit it again with "
            f"`--key {key}`, which never makes two of it"
        )


_KINDS: Final[Mapping[int, type[ProblemError]]] = {
    400: InvalidError,
    401: ForbiddenError,
    403: ForbiddenError,
    404: MissingError,
    409: ConflictError,
    413: InvalidError,
    415: InvalidError,
    422: InvalidError,
}
_NOT_READY: Final = frozenset({429, 502, 503, 504})


def error_of(status: int, problem: Mapping[str, Any]) -> TrainmasterError:
    """Turn a problem+json answer into the error to raise."""
    detail = str(problem.get("detail") or problem.get("title") or f"status {status}")
    if status in _NOT_READY:
        return NotReadyError(detail)
    faults: list[Mapping[str, Any]] = problem.get("faults") or []
    if faults and "source" in problem:
        return SpecRejectedError(
            source=str(problem["source"]), faults=[_fault(fault) for fault in faults]
        )
    kind = _KINDS.get(status, ServerError)
    return kind(status=status, detail=detail, members=problem)


def _fault(told: Mapping[str, Any]) -> Fault:
    return Fault(
        field=str(told.get("field", "")),
        message=str(told.get("message", "")),
        line=int(told.get("line", 0)),
        column=int(told.get("column", 0)),
    )
