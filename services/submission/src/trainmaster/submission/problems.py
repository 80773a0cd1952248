"""Decides how submission tells its own errors over HTTP; the runtime does the rest."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict
from http import HTTPStatus
from typing import Final

from trainmaster.core.errors import SpecRejectedError, TrainmasterError
from trainmaster.runtime.http import ProblemError
from trainmaster.submission.desk import (
    KeyForgottenError,
    LogFullError,
    NotPossibleError,
)
from trainmaster.submission.settings import TEXT_BYTES_MAX

_CONFLICTS: Final = (KeyForgottenError, NotPossibleError)


@contextmanager
def told() -> Generator[None]:
    """Give a job file's faults their places, and a refusal its status."""
    try:
        yield
    except SpecRejectedError as error:
        raise ProblemError(
            status=HTTPStatus.UNPROCESSABLE_ENTITY,
            detail=str(error),
            members={
                "title": "The job file is wrong",
                "source": error.source,
                "faults": [asdict(fault) for fault in error.faults],
            },
        ) from error
    except _CONFLICTS as error:
        raise _refusal(HTTPStatus.CONFLICT, error) from error
    except LogFullError as error:
        raise _refusal(HTTPStatus.INSUFFICIENT_STORAGE, error) from error


def _refusal(status: HTTPStatus, error: TrainmasterError) -> ProblemError:
    return ProblemError(status=status, detail=str(error))


def bad_request(*, what: str, hint: str) -> ProblemError:
    """Make the error of a wrong header or parameter."""
    return ProblemError(status=HTTPStatus.BAD_REQUEST, detail=f"{what}; {hint}")


def too_large() -> ProblemError:
    """Make the error of a body that is larger than any job file."""
    return ProblemError(
        status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        detail=f"the body has more than {TEXT_BYTES_MAX:,} bytes; a job file is "
        "shorter, put data into files of its own",
    )


def unsupported_type(found: str) -> ProblemError:
    """Make the error of a body that is neither YAML nor JSON."""
    return ProblemError(
        status=HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        detail=f"content type {found or 'none'!r} is not read here; "
        "send application/yaml or application/json",
    )
