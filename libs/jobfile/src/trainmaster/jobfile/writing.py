"""Writes plain values as YAML; texts are quoted as in JSON, which YAML reads."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}
_NOT_PLAIN: Final = frozenset(
    {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
)
"""Words that some reader of YAML takes for something else than text."""
_BINARY: Final = (("Ti", 1024**4), ("Gi", 1024**3), ("Mi", 1024**2), ("Ki", 1024))
_DECIMAL: Final = (("T", 1000**4), ("G", 1000**3), ("M", 1000**2))


def size_text(size: int) -> str:
    """Write bytes as shortly as can be read back."""
    units = (*_BINARY, *_DECIMAL)
    whole = [f"{size // n}{unit}" for unit, n in units if size and size % n == 0]
    return min([*whole, str(size)], key=len)


def to_yaml(value: Any) -> str:
    """Write a value as a YAML document."""
    return "\n".join(_lines(value)) + "\n"


def _lines(value: Any) -> Iterator[str]:
    fields, items = _as_fields(value), _as_list(value)
    for key, part in fields.items():
        yield from _under(f"{_word(key)}:", part)
    for part in items:
        yield from _under("-", part)
    if not fields and not items:
        yield _scalar(value)


def _as_fields(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _as_list(value: Any) -> list[Any]:
    kind: type[Any] = value.__class__
    return list(value) if issubclass(kind, list | tuple) else []


def _under(head: str, part: Any) -> Iterator[str]:
    if not part or isinstance(part, str | int | float):
        yield f"{head} {_scalar(part)}"
        return
    lines = list(_lines(part))
    if head == "-":
        yield f"- {lines[0]}"
        yield from (f"  {line}" for line in lines[1:])
    else:
        yield head
        yield from (f"  {line}" for line in lines)


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return _word(value)
    text = json.dumps(value)
    if isinstance(value, float) and "e" in text and "." not in text:
        return text.replace("e", ".0e")  # without a point YAML 1.1 reads a word
    return text


def _word(text: str) -> str:
    if _PLAIN.fullmatch(text) and text.lower() not in _NOT_PLAIN:
        return text
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    return character if character.isprintable() else f"\\U{ord(character):08x}"
