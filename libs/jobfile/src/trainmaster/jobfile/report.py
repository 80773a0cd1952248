"""Owns what is wrong with a job file: every fault with its field and its place."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from trainmaster.core.errors import Fault
from trainmaster.jobfile.document import Node, Place
from trainmaster.jobfile.limits import FAULTS_MAX

T = TypeVar("T")
_SHOWN_CHARACTERS: Final = 60
_START: Final = Place(line=1, column=1)


class TooManyFaultsError(ValueError):
    """There are so many faults that the rest is not looked for."""


@dataclass(slots=True, kw_only=True)
class Report:
    """All that is wrong with a file so far, and where each field stands.

    `spelt` says what a file in a dialect calls a field of the canonical form.
    """

    faults: list[Fault] = field(default_factory=list[Fault])
    places: dict[str, Place] = field(default_factory=dict[str, Place])
    spelt: Mapping[str, str] = field(default_factory=dict[str, str])

    def wrong(self, name: str, message: str, place: Place | None = None) -> None:
        """Add a fault; without a place it is the field's own."""
        theirs = self.name_of(name)
        at = place or self.place_of(theirs)
        said = message.replace(f"`{name}`", f"`{theirs}`", 1) if name else message
        fault = Fault(field=theirs, message=said, line=at.line, column=at.column)
        if fault in self.faults:
            return  # two ways led to it
        if len(self.faults) >= FAULTS_MAX:
            raise TooManyFaultsError
        self.faults.append(fault)

    def name_of(self, name: str) -> str:
        """Say what the file calls a field of the canonical form."""
        if not self.spelt or name in self.places:
            return name
        whole, part = f"{name}.", name
        while part and part not in self.spelt:
            part = part.rpartition(".")[0]
        inside = next((n for n in self.spelt if n.startswith(whole)), name)
        return self.spelt.get(part or inside, name)

    def stands(self, name: str) -> bool:
        """Say whether the file has this field, right or wrong."""
        return self.name_of(name) in self.places

    def place_of(self, name: str) -> Place:
        """Find a field's place, else that of the group it would stand in."""
        while name:
            if name in self.places:
                return self.places[name]
            name = name.rpartition(".")[0]
        return _START

    def blamed(self, name: str) -> bool:
        """Say whether the field is wrong already."""
        theirs = self.name_of(name)
        return any(fault.field == theirs for fault in self.faults)


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
