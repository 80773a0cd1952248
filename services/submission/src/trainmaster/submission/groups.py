"""Decides which names may stand in a list or a group, and finds every wrong one."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from trainmaster.submission.document import Items, Node, Pair, Pairs
from trainmaster.submission.fields import raw
from trainmaster.submission.nearest import did_you_mean, nearest_field
from trainmaster.submission.report import Reader, Where, shown


def list_of(read_item: Reader[str]) -> Reader[tuple[str, ...]]:
    """Read a list."""

    def read(node: Node, where: Where) -> tuple[str, ...] | None:
        if not isinstance(node, Items):
            where.wrong("must be a list")
            return None
        found = [
            read_item(item, where.inner(f"[{index}]", item.place))
            for index, item in enumerate(node.items)
        ]
        kept = tuple(each for each in found if each is not None)
        return kept if len(kept) == len(found) else None

    return read


def pairs_of(
    key: re.Pattern[str], rule: str, objection: Callable[[str], str]
) -> Reader[Mapping[str, str]]:
    """Read names with values; `objection` says why a name is refused, or ""."""

    def read(node: Node, where: Where) -> Mapping[str, str] | None:
        if not isinstance(node, Pairs):
            where.wrong("must be a group of `name: value`")
            return None
        values: dict[str, str] = {}
        for pair in unique(node, where):
            inner = where.inner(f".{pair.key}", pair.place)
            refused = objection(pair.key)
            if key.fullmatch(pair.key) is None:
                inner.wrong(f"must be named with {rule}")
            elif refused:
                inner.wrong(refused)
            elif (value := raw(pair.value, inner)) is not None:
                values[pair.key] = value
        return values

    return read


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


def group(readers: Mapping[str, Reader[Any]]) -> Reader[Mapping[str, Any]]:
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
                guess = nearest_field(pair.key, readers, inside=where.name)
                report.places.setdefault(guess, pair.place)  # there, only misspelt
                message = f"unknown field {shown(name)}{did_you_mean(guess)}"
                report.wrong(name, message, pair.place)
                continue
            inner = Where(name=name, place=pair.place, report=report)
            value = reader(pair.value, inner)
            if value is not None:
                values[pair.key] = value
        return values

    return read
