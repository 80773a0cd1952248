"""Owns the way from JSON to the tree of a job file; JSON has no places to tell."""

import json
from typing import Any

from trainmaster.jobfile.document import (
    Budget,
    Items,
    Node,
    Pair,
    Pairs,
    Place,
    Scalar,
    UnreadableError,
    too_deep,
    usable,
)


def read_json(text: str) -> Node:
    """Read JSON; places stay unknown. Raises UnreadableError."""
    try:
        value = json.loads(
            text,
            object_pairs_hook=_Object,
            parse_int=_Word,
            parse_float=_Word,
            parse_constant=_Word,
        )
    except json.JSONDecodeError as error:
        message = f"is not JSON: {error.msg}"
        place = Place(line=error.lineno, column=error.colno)
        raise UnreadableError(message, place) from error
    except RecursionError as error:
        raise too_deep() from error
    return _node(value, depth=0, budget=Budget())


class _Object(list[tuple[str, Any]]):
    """An object with its duplicates."""


class _Word(str):
    """A number as it was written."""

    __slots__ = ()


def _node(value: Any, *, depth: int, budget: Budget) -> Node:
    budget.spend(depth)
    kind: type[Any] = value.__class__
    if kind is _Object:
        pairs = [
            Pair(key=usable(key), value=_node(part, depth=depth + 1, budget=budget))
            for key, part in value
        ]
        return Pairs(pairs=tuple(pairs))
    if kind is list:
        items = [_node(part, depth=depth + 1, budget=budget) for part in value]
        return Items(items=tuple(items))
    if kind is _Word:
        return Scalar(text=str(value), plain=True)
    if kind is str:
        return Scalar(text=usable(value), plain=False)
    return Scalar(text=json.dumps(value), plain=True)
