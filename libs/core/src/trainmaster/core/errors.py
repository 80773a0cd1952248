"""Every error this project raises, as a tree.

* TrainmasterError
  + PermanentError            again cannot help: refuse, or park and tell a human
    - InvalidTokenError       a name does not fit into a subject
    - SpecRejectedError       a job file is wrong; carries every place
    - NotAllowedError         the caller may not do this
    - NotFoundError           nothing has this id or name
    - AlreadyExistsError      the same key was used for something else
    - LogLostError            the log forgot what this service had read
  + TransientError            again may help
    - UnreachableError        a server did not answer
    - LeadershipLostError     another replica is active now
"""

from collections.abc import Sequence
from dataclasses import dataclass


class TrainmasterError(Exception):
    """Base of everything raised on purpose."""


class PermanentError(TrainmasterError):
    """Trying again cannot help."""


class TransientError(TrainmasterError):
    """Trying again may help."""


class InvalidTokenError(PermanentError):
    """A name cannot be a part of a subject."""

    def __init__(self, *, name: str, value: str) -> None:
        super().__init__(
            f"{name} {value!r} is not usable in a subject; "
            "use 1 to 64 letters, digits, `_` or `-`"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One wrong place in a job file; line and column count from 1, 0 is unknown."""

    field: str
    message: str
    line: int = 0
    column: int = 0

    @property
    def place(self) -> str:
        """The part of a sentence that follows the file's name."""
        return f":{self.line}:{self.column}" if self.line else ":"


class SpecRejectedError(PermanentError):
    """A job file cannot be accepted; nothing was submitted."""

    def __init__(self, *, source: str, faults: Sequence[Fault]) -> None:
        self.source = source
        self.faults = tuple(faults)
        lines = [f"{source}{fault.place} {fault.message}" for fault in self.faults]
        super().__init__("\n".join([*lines, "Nothing was submitted."]))


class NotAllowedError(PermanentError):
    """The caller lacks the right."""

    def __init__(self, *, action: str, hint: str) -> None:
        super().__init__(f"not allowed to {action}; {hint}")


class NotFoundError(PermanentError):
    """Nothing has this id or name."""

    def __init__(self, *, kind: str, name: str, hint: str) -> None:
        super().__init__(f"no {kind} {name!r}; {hint}")


class AlreadyExistsError(PermanentError):
    """The name or key is taken by something different."""

    def __init__(self, *, kind: str, name: str, hint: str) -> None:
        super().__init__(f"{kind} {name!r} exists already; {hint}")


class LogLostError(PermanentError):
    """The stream no longer holds what this service has read from it."""

    def __init__(self, *, stream: str, expected: str, found: str) -> None:
        self.stream = stream
        super().__init__(
            f"stream {stream} lost its tail: expected {expected}, found {found}; "
            "nothing is appended any more, re-seed it from the archive "
            "(docs/architecture.md, `A lost log`)"
        )


class UnreachableError(TransientError):
    """A server did not answer."""

    def __init__(self, *, what: str, address: str, hint: str) -> None:
        super().__init__(f"{what} at {address} does not answer; {hint}")


class LeadershipLostError(TransientError):
    """Another replica took over; this one reloads and stands by."""

    def __init__(self, *, service: str) -> None:
        super().__init__(f"{service}: another replica is active, standing by")
