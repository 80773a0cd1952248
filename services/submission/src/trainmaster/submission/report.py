"""Owns what is wrong with a job file: every fault with its field and its place."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from trainmaster.core.errors import Fault
from trainmaster.submission.document import Node, Place

T = TypeVar("T")
_SHOWN_CHARACTERS: Final = 60


@dataclass(slots=True, kw_only=True)
class Report:
    """All that is wrong with a file so far, and where each field stands."""

    faults: list[Fault] = field(default_factory=list[Fault])
    places: dict[str, Place] = field(default_factory=dict[str, Place])

    def wrong(self, name: str, message: str, place: Place | None = None) -> None:
        """Add a fault; without a place it is the field's own."""
        at = place or self.places.get(name, Place(line=1, column=1))
        self.faults.append(
            Fault(field=name, message=message, line=at.line, column=at.column)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """The field a node stands in."""

    name: str
    place: Place
    report: Report

    def wrong(self, message: str) -> None:
        """Report that this field is wrong; the message begins behind its name."""
        self.report.wrong(self.name, f"`{self.name}` {message}", self.place)

    def inner(self, name: str, place: Place) -> "Where":
        """Stand in a part of this field."""
        return Where(name=f"{self.name}{name}", place=place, report=self.report)


Reader = Callable[[Node, Where], T | None]


def shown(text: str) -> str:
    """Quote what somebody wrote, in one short line."""
    line = " ".join(text.split())
    if len(line) > _SHOWN_CHARACTERS:
        line = f"{line[:_SHOWN_CHARACTERS]}…"
    return f"`{line}`"
