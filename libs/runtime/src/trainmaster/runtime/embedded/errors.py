"""The errors of embedded servers; each says what a person does next.

* PermanentError
  - ServerMissingError   the program of a server is not installed
  - ServerFailedError    a server did not start, or refused a change; quotes its log
  - ServerPlaceError     its directory cannot be used
* TransientError
  - ServerBusyError      another process works on the same directory
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from trainmaster.core.errors import PermanentError, TransientError

HINTS: Final = (
    ("no space left on device", "free space on the disk of {place}"),
    ("address already in use", "start again, another port is chosen then"),
    ("permission denied", "give its user access to {place}"),
    ("cannot allocate memory", "free memory on this machine"),
)
"""What a log line means for the reader; the first match counts."""


class ServerMissingError(PermanentError):
    """The program is nowhere to be found."""

    def __init__(self, *, program: str, package: str, searched: Sequence[Path]) -> None:
        places = ", ".join(str(path) for path in searched)
        super().__init__(
            f"{program} was not found (looked at {places}); install {package}"
        )


class ServerFailedError(PermanentError):
    """The server said no; what it said is quoted."""

    def __init__(
        self, *, server: str, what: str, log: Path, lines: Sequence[str]
    ) -> None:
        self.lines = tuple(lines)
        quoted = [f"  | {line}" for line in lines] or ["  | (it wrote nothing)"]
        step = next_step(lines, log.parent)
        sentence = f"{server} {what}; {step}. The last lines of {log}:"
        super().__init__("\n".join([sentence, *quoted]))


class ServerPlaceError(PermanentError):
    """A directory is missing, closed, or someone else's."""

    def __init__(self, *, server: str, place: Path, why: str, hint: str) -> None:
        super().__init__(f"{server} cannot use {place}: {why}; {hint}")


class ServerBusyError(TransientError):
    """Another process holds the directory and no server in it answers."""

    def __init__(self, *, server: str, place: Path, seconds: float) -> None:
        super().__init__(
            f"{place} was held by another process for {seconds:.0f} s, and no "
            f"{server} of this machine answers for it; stop the other start, or the "
            f"container that uses this directory (`fuser {place}/lock` names it)"
        )


def next_step(lines: Sequence[str], place: Path) -> str:
    """Say what to do about the usual reasons."""
    said = "\n".join(lines).lower()
    for words, hint in HINTS:
        if words in said:
            return hint.format(place=place)
    return "remove the cause it names and start again"
