"""Decides with which code `tm` ends, so that scripts can tell what happened."""

from enum import IntEnum
from typing import Final

from trainmaster.client.errors import (
    ConflictError,
    ForbiddenError,
    InvalidError,
    MissingError,
    NotReadyError,
)
from trainmaster.core.errors import (
    NotFoundError,
    SpecRejectedError,
    TrainmasterError,
    UnreachableError,
)


class Exit(IntEnum):
    """How `tm` ends."""

    OK = 0
    FAILED = 1
    INVALID = 2
    NOT_FOUND = 3
    FORBIDDEN = 4
    CONFLICT = 5
    UNREACHABLE = 6
    TIMED_OUT = 124
    DETACHED = 130


class UsageError(TrainmasterError):
    """What was typed makes no sense."""

    def __init__(self, *, problem: str, hint: str) -> None:
        super().__init__(f"{problem}; {hint}")


class TimedOutError(TrainmasterError):
    """It took longer than the caller wanted to wait."""

    def __init__(self, *, job: str, seconds: float) -> None:
        super().__init__(
            f"job {job} was not over after {seconds:g} s and goes on; "
            f"wait again with `tm events -f {job}`"
        )


_CODES: Final = (
    (SpecRejectedError, Exit.INVALID),
    (UsageError, Exit.INVALID),
    (InvalidError, Exit.INVALID),
    (MissingError, Exit.NOT_FOUND),
    (NotFoundError, Exit.NOT_FOUND),
    (ForbiddenError, Exit.FORBIDDEN),
    (ConflictError, Exit.CONFLICT),
    (UnreachableError, Exit.UNREACHABLE),
    (NotReadyError, Exit.UNREACHABLE),
    (TimedOutError, Exit.TIMED_OUT),
)


def code_of(error: TrainmasterError) -> Exit:
    """Say which code an error ends with."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), Exit.FAILED)
