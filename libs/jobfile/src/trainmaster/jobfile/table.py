"""Owns what a field is: how it is read, how it is told, and what becomes of it.

The tables made of these are the one source of what is accepted, of the JSON Schema and
of the reference.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, cast

from trainmaster.jobfile.report import Reader


class Acts(StrEnum):
    """Whether what a field asks for is done.

    The rule: what would make another job of it is refused until it is done; what only
    loses a convenience is recorded and announced.
    """

    NOW = "yes"
    ANNOUNCED = "recorded, announced"
    REFUSED = "refused for now"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What a value must be: for the reader, in words, as JSON Schema.

    `fields` are those of a group; with `each`, those of every member of a list or of a
    group with free names.
    """

    read: Reader[Any]
    words: str
    schema: Mapping[str, Any] = field(default_factory=dict[str, Any])
    fields: tuple["Field", ...] = ()
    each: bool = False


def _as_it_is(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field. `meanwhile` says what happens instead as long as it is not acted on.

    In a dialect, `becomes` is the canonical field and `via` makes its value.
    """

    name: str
    kind: Kind
    means: str
    default: str = ""
    acts: Acts = Acts.NOW
    meanwhile: str = ""
    becomes: str = ""
    via: Callable[[Any], Any] = _as_it_is


Table = Sequence[Field]
REQUIRED: Final = "required"
"""The default of a field without which its group means nothing."""


def said(
    values: Mapping[str, Any], table: Table, prefix: str = ""
) -> Iterator[tuple[str, Field]]:
    """Walk the fields that a file has values for, under their dotted names."""
    for each in table:
        if each.name not in values:
            continue
        name = f"{prefix}{each.name}"
        yield name, each
        value = values[each.name]
        if each.kind.fields:
            for inner, at in _parts(value, name, each=each.kind.each):
                yield from said(inner, each.kind.fields, at)


def as_group(value: Any) -> Mapping[str, Any] | None:
    """Take a value as a group of fields, if it is one."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else None


def _parts(
    value: Any, name: str, *, each: bool
) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Find the groups in a value, and what the names of their fields begin with."""
    group = as_group(value)
    kind: type[Any] = value.__class__
    members: Iterable[tuple[str, Any]] = ((f"{name}.", value),)
    if each and group is not None:
        members = ((f"{name}.{key}.", part) for key, part in group.items())
    elif each and issubclass(kind, tuple):
        members = ((f"{name}[{i}].", part) for i, part in enumerate(value))
    for at, part in members:
        inner = as_group(part)
        if inner is not None:
            yield inner, at
