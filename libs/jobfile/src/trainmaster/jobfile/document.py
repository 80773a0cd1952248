"""The tree of a job file that knows every place in it, and the bounds of one.

Scalars stay text: which type a word has is decided by the field that wants it, so `no`
is never secretly false.
"""

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

from trainmaster.core.errors import Fault
from trainmaster.jobfile.limits import DEPTH_MAX, VALUES_MAX

_UNUSABLE: Final = re.compile("[\x00\ud800-\udfff]")


class Place(NamedTuple):
    """Line and column, counted from 1; 0 is unknown."""

    line: int = 0
    column: int = 0


NOWHERE: Final = Place()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scalar:
    """A word or a number as it was written; `plain` means without quotes."""

    place: Place = NOWHERE
    text: str
    plain: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """A list."""

    place: Place = NOWHERE
    items: tuple["Node", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One `key: value`; the place is the key's."""

    place: Place = NOWHERE
    key: str
    value: "Node"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """A mapping, in the order it was written."""

    place: Place = NOWHERE
    pairs: tuple[Pair, ...]


Node = Scalar | Items | Pairs


class UnreadableError(ValueError):
    """The text is no tree at all; carries the one place where reading stopped."""

    def __init__(self, message: str, place: Place | None = None) -> None:
        super().__init__(message)
        at = place or Place(line=1, column=1)
        self.fault = Fault(field="", message=message, line=at.line, column=at.column)


@dataclass(slots=True)
class Budget:
    """What a tree may still have; reading stops where it is used up."""

    values: int = VALUES_MAX

    def spend(self, depth: int, place: Place | None = None) -> None:
        """Pay for one value at this depth. Raises UnreadableError."""
        if depth > DEPTH_MAX:
            raise too_deep(place)
        self.values -= 1
        if self.values < 0:
            message = f"has more than {VALUES_MAX} values; a job file is shorter"
            raise UnreadableError(message, place)


def too_deep(place: Place | None = None) -> UnreadableError:
    """Make the error of a tree that is too deep."""
    message = f"is nested deeper than {DEPTH_MAX} levels; a job file is flat"
    return UnreadableError(message, place)


def usable(text: str, place: Place | None = None) -> str:
    """Return text that every process can be given. Raises UnreadableError."""
    if _UNUSABLE.search(text):
        raise UnreadableError("contains a character that no text may have", place)
    return text


def position(text: str, index: int) -> Place:
    """Say in which line and column a character stands."""
    line = text.count("\n", 0, index) + 1
    return Place(line=line, column=index - text.rfind("\n", 0, index))
