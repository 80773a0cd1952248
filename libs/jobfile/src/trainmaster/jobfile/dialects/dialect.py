"""Owns how a dialect becomes the canonical form: every field of it names its place."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trainmaster.jobfile.kinds import group
from trainmaster.jobfile.table import Field, Kind, Table

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """A form of its own, all of it in the one group called `name`."""

    name: str
    table: Table
    means: str

    @property
    def kind(self) -> Kind:
        """Say what the group must be."""
        return group(*self.table)

    def spelt(self) -> dict[str, str]:
        """Say for each canonical field what it is called here."""
        return {
            field.becomes: name
            for name, field in _leaves(self.table, f"{self.name}.")
            if field.becomes
        }

    def canonical(self, values: Values) -> dict[str, Any]:
        """Give the values their places in the canonical form."""
        found: dict[str, Any] = {}
        for field, value in _said(values, self.table):
            _put(found, field.becomes.split("."), field.via(value))
        return found


def _leaves(table: Table, prefix: str) -> Iterator[tuple[str, Field]]:
    for field in table:
        name = f"{prefix}{field.name}"
        if field.kind.fields:
            yield from _leaves(field.kind.fields, f"{name}.")
        else:
            yield name, field


def _said(values: Values, table: Table) -> Iterator[tuple[Field, Any]]:
    for field in table:
        if field.name not in values:
            continue
        if field.kind.fields:
            yield from _said(values[field.name], field.kind.fields)
        else:
            yield field, values[field.name]


def _put(found: dict[str, Any], path: list[str], value: Any) -> None:
    *groups, last = path
    for name in groups:
        found = found.setdefault(name, {})
    found[last] = value
