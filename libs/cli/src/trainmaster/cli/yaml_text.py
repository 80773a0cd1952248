"""Writes plain values as YAML; texts are quoted as in JSON, which YAML reads."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from trainmaster.cli.words import as_fields, as_list

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}
_NOT_PLAIN: Final = frozenset(
    {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
)
"""Words that some reader of YAML takes for something else than text."""


def to_yaml(value: Any) -> str:
    """Write a value as a YAML document."""
    return "\n".join(_lines(value)) + "\n"


def _lines(value: Any) -> Iterator[str]:
    fields, items = as_fields(value), as_list(value)
    for key, part in fields.items():
        yield from _under(f"{_word(key)}:", part)
    for part in items:
        yield from _under("-", part)
    if not fields and not items:
        yield _scalar(value)


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
