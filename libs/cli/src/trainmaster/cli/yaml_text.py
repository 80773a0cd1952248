"""Writes plain values as YAML; every text is quoted as JSON quotes it, which YAML reads."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NOT_PLAIN: Final = frozenset(
    {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
)


def to_yaml(value: Any) -> str:
    """Write a value as a YAML document."""
    return "\n".join(_lines(value)) + "\n"


def _lines(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping) and value:
        for key, part in value.items():
            yield from _under(f"{_word(str(key))}:", part, indent="  ")
    elif isinstance(value, Sequence) and not isinstance(value, str) and value:
        for part in value:
            yield from _under("-", part, indent="  ")
    else:
        yield _scalar(value)


def _under(head: str, part: Any, *, indent: str) -> Iterator[str]:
    if not part or isinstance(part, str | int | float):
        yield f"{head} {_scalar(part)}"
        return
    lines = list(_lines(part))
    if head == "-":
        yield f"- {lines[0]}"
        yield from (f"{indent}{line}" for line in lines[1:])
    else:
        yield head
        yield from (f"{indent}{line}" for line in lines)


def _scalar(value: Any) -> str:
    return _word(value) if isinstance(value, str) else json.dumps(value)


def _word(text: str) -> str:
    if _PLAIN.fullmatch(text) and text.lower() not in _NOT_PLAIN:
        return text
    return json.dumps(text, ensure_ascii=False)
