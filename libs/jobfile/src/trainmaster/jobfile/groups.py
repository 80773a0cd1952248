"""Decides which names may stand in a list or a group, and finds every wrong one."""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from trainmaster.jobfile.credentials import looks_secret
from trainmaster.jobfile.document import Items, Node, Pair, Pairs, Scalar
from trainmaster.jobfile.nearest import did_you_mean, nearest_field
from trainmaster.jobfile.report import Reader, Report, Where, shown
from trainmaster.jobfile.scalars import raw


def list_of(read_item: Reader[Any]) -> Reader[tuple[Any, ...]]:
    """Read a list."""

    def read(node: Node, where: Where) -> tuple[Any, ...] | None:
        if not isinstance(node, Items):
            where.wrong("must be a list")
            return None
        found: list[Any] = []
        for index, item in enumerate(node.items):
            inner = where.inner(f"[{index}]", item.place)
            where.report.places[inner.name] = item.place
            found.append(read_item(item, inner))
        kept = tuple(each for each in found if each is not None)
        return kept if len(kept) == len(found) else None

    return read


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The rule of free names in a group; `objection` says why one is refused, or ""."""

    pattern: re.Pattern[str]
    rule: str
    objection: Callable[[str], str] = lambda _: ""


def pairs_of(names: Names, read_value: Reader[Any] = raw) -> Reader[Mapping[str, Any]]:
    """Read free names with values."""

    def read(node: Node, where: Where) -> Mapping[str, Any] | None:
        if not isinstance(node, Pairs):
            where.wrong("must be a group of `name: value`")
            return None
        values: dict[str, Any] = {}
        for pair in unique(node, where):
            inner = where.inner(f".{pair.key}", pair.place)
            where.report.places[inner.name] = pair.place
            refused = names.objection(pair.key)
            if names.pattern.fullmatch(pair.key) is None:
                inner.wrong(f"must be named with {names.rule}")
            elif refused:
                inner.wrong(refused)
            elif _is_open_secret(pair):
                inner.wrong(open_secret(pair.key))
            elif (value := read_value(pair.value, inner)) is not None:
                values[pair.key] = value
        return values

    return read


def _is_open_secret(pair: Pair) -> bool:
    return isinstance(pair.value, Scalar) and looks_secret(pair.key, pair.value.text)


def open_secret(name: str) -> str:
    """Say what to do about a secret; the secret itself is not repeated."""
    variable = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return (
        "looks like a secret, and what is in a job file is read by many: store it with "
        f"a provider and write `secrets: {{{variable}: secret://PROVIDER/NAME}}`"
    )


def unique(node: Pairs, where: Where) -> list[Pair]:
    """List the pairs whose key is new; report the others."""
    first: dict[str, Pair] = {}
    for pair in node.pairs:
        if pair.key in first:
            name = f"{where.name}.{pair.key}" if where.name else pair.key
            line = first[pair.key].place.line
            hint = f" (first in line {line})" if line else ""
            where.report.wrong(name, f"`{name}` is given twice{hint}", pair.place)
        else:
            first[pair.key] = pair
    return list(first.values())


def group(
    readers: Mapping[str, Reader[Any]], *, required: Collection[str] = ()
) -> Reader[Mapping[str, Any]]:
    """Read known fields; an unknown one is told the nearest right name."""

    def read(node: Node, where: Where) -> Mapping[str, Any] | None:
        if not isinstance(node, Pairs):
            where.wrong("must be a group of fields")
            return None
        report, values = where.report, dict[str, Any]()
        for pair in unique(node, where):
            name = f"{where.name}.{pair.key}" if where.name else pair.key
            report.places[name] = pair.place
            reader = readers.get(pair.key)
            if reader is None:
                _report_unknown(pair, where, readers)
                continue
            inner = Where(name=name, place=pair.place, report=report)
            value = reader(pair.value, inner)
            if value is not None:
                values[pair.key] = value
        for missing in required:
            name = f"{where.name}.{missing}"
            if name not in report.places:
                report.wrong(name, f"`{name}` is missing", where.place)
        return values

    return read


def _report_unknown(
    pair: Pair, where: Where, readers: Mapping[str, Reader[Any]]
) -> None:
    report: Report = where.report
    name = f"{where.name}.{pair.key}" if where.name else pair.key
    guess = nearest_field(pair.key, readers, inside=where.name)
    report.places.setdefault(guess, pair.place)  # it is there, only misspelt
    report.wrong(name, f"unknown field {shown(name)}{did_you_mean(guess)}", pair.place)
