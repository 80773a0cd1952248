"""Decides whether a value fits its field, and what it then is: single values.

A reader takes the node and where it stands, and returns the value or None after it has
put a fault into the report: one run finds every fault of a file.
"""

import math
import re
from collections.abc import Collection
from typing import Final

from trainmaster.jobfile import units
from trainmaster.jobfile.document import Items, Node, Pairs, Scalar
from trainmaster.jobfile.limits import (
    MEMORY_BYTES_MAX,
    MEMORY_BYTES_MIN,
    SECONDS_MAX,
)
from trainmaster.jobfile.nearest import did_you_mean, nearest
from trainmaster.jobfile.report import Reader, Where, shown

_NULL: Final = re.compile(r"(?:~|null|Null|NULL)?")
_FLAG: Final = re.compile(r"true|True|TRUE|false|False|FALSE")
_OTHER_FLAGS: Final = {
    **dict.fromkeys(("yes", "on", "y", "1", "enabled"), "true"),
    **dict.fromkeys(("no", "off", "n", "0", "disabled"), "false"),
}
_NUMBER: Final = re.compile(
    r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|0o[0-7]+|0x[0-9a-fA-F]+"
    r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)|NaN|-?Infinity"
)
_DECIMAL: Final = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?([eE][-+]?[0-9]{1,3})?")
_SECRET: Final = re.compile(r"secret://[A-Za-z0-9_-]{1,64}/[A-Za-z0-9._/-]{1,200}")
_ADDRESS: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_STORAGE: Final = re.compile(r"storage://[A-Za-z0-9][A-Za-z0-9._-]{0,63}(/[^?#]*)?")
_PLACEHOLDER: Final = re.compile(r"\{[^}]*\}|[{}]")


def _scalar(node: Node, where: Where, wanted: str) -> Scalar | None:
    """Take a word that has a value, else report that `wanted` is."""
    match node:
        case Scalar() if node.plain and _NULL.fullmatch(node.text):
            where.wrong("has no value; give one or remove the line")
        case Scalar():
            return node
        case Items():
            where.wrong(f"must be {wanted}, not a list")
        case Pairs():
            where.wrong(f"must be {wanted}, not a group of fields")
    return None


def raw(node: Node, where: Where) -> str | None:
    """Read a value exactly as it was written, whatever it looks like."""
    scalar = _scalar(node, where, "text")
    return None if scalar is None else scalar.text


def text(node: Node, where: Where) -> str | None:
    """Read text; a bare number or flag is more likely a mistake."""
    scalar = _scalar(node, where, "text")
    if scalar is None:
        return None
    if scalar.plain and (
        _NUMBER.fullmatch(scalar.text) or _FLAG.fullmatch(scalar.text)
    ):
        where.wrong(f'must be text; write it in quotes: "{scalar.text}"')
        return None
    if not scalar.text.strip():
        where.wrong("is empty; give a value or remove the line")
        return None
    return scalar.text


def word(pattern: re.Pattern[str], rule: str) -> Reader[str]:
    """Read text of one form; `rule` says which."""

    def read(node: Node, where: Where) -> str | None:
        value = text(node, where)
        if value is not None and pattern.fullmatch(value) is None:
            where.wrong(f"must be {rule}, not {shown(value)}")
            return None
        return value

    return read


def choice(right: Collection[str]) -> Reader[str]:
    """Read one of a few words."""

    def read(node: Node, where: Where) -> str | None:
        value = text(node, where)
        if value is None or value in right:
            return value
        words = ", ".join(f"`{each}`" for each in right)
        guess = did_you_mean(nearest(value, right))
        where.wrong(f"must be one of {words}, not {shown(value)}{guess}")
        return None

    return read


def flag(node: Node, where: Where) -> bool | None:
    """Read true or false; the yes and no of YAML 1.1 are words here."""
    scalar = _scalar(node, where, "true or false")
    if scalar is None:
        return None
    if scalar.plain and _FLAG.fullmatch(scalar.text):
        return scalar.text.lower() == "true"
    guess = did_you_mean(_OTHER_FLAGS.get(scalar.text.lower(), ""))
    where.wrong(f"must be `true` or `false`, not {_as_written(scalar)}{guess}")
    return None


def integer(least: int, most: int) -> Reader[int]:
    """Read a whole number within bounds."""

    def read(node: Node, where: Where) -> int | None:
        scalar = _scalar(node, where, "a whole number")
        if scalar is None:
            return None
        value = units.whole(scalar.text)
        if value is None or not scalar.plain:
            hint = "; remove the quotes" if value is not None else _octal(scalar.text)
            where.wrong(f"must be a whole number, not {_as_written(scalar)}{hint}")
            return None
        if not least <= value <= most:
            where.wrong(f"must be from {least:,} to {most:,}, not {value:,}")
            return None
        return value

    return read


def _octal(text: str) -> str:
    decimal = text.lstrip("0")
    if not decimal.isdecimal() or decimal == text:
        return ""
    return f"; some read a leading zero as octal, write `{decimal}`"


def number(node: Node, where: Where) -> float | None:
    """Read a finite number."""
    scalar = _scalar(node, where, "a number")
    if scalar is None:
        return None
    if scalar.plain and _DECIMAL.fullmatch(scalar.text):
        value = float(scalar.text)
        if math.isfinite(value):
            return value
    where.wrong(f"must be a number such as `0.25` or `1e-3`, not {_as_written(scalar)}")
    return None


def _as_written(scalar: Scalar) -> str:
    return shown(scalar.text if scalar.plain else f'"{scalar.text}"')


def duration(*, least: float = 0.0) -> Reader[float]:
    """Read seconds, or a number with d, h, m, s."""

    def read(node: Node, where: Where) -> float | None:
        scalar = _scalar(node, where, "a duration")
        if scalar is None:
            return None
        value = units.duration(scalar.text)
        if value is None:
            guess = did_you_mean(units.likely_duration(scalar.text))
            where.wrong(
                "must be a duration such as `1800`, `30m` or `1h30m`, "
                f"not {shown(scalar.text)}{guess}"
            )
            return None
        if not (math.isfinite(value) and least <= value <= SECONDS_MAX):
            rule = "more than zero" if least else "zero or more"
            where.wrong(
                f"must be {rule} and at most ten years, not {shown(scalar.text)}"
            )
            return None
        return value

    return read


def memory(node: Node, where: Where) -> int | None:
    """Read a size in bytes."""
    scalar = _scalar(node, where, "a size")
    if scalar is None:
        return None
    value = units.size(scalar.text)
    if value is None:
        guess = did_you_mean(units.likely_size(scalar.text))
        where.wrong(
            "must be a size such as `512Gi`, `1.5Ti` or `64G`, "
            f"not {shown(scalar.text)}{guess}"
        )
        return None
    if not MEMORY_BYTES_MIN <= value <= MEMORY_BYTES_MAX:
        guess = did_you_mean(f"{scalar.text}Gi" if scalar.text.isdigit() else "")
        where.wrong(f"must be from 1Mi to 1024Ti, not {value:,} bytes{guess}")
        return None
    return value


def path(node: Node, where: Where) -> str | None:
    """Read a path or `storage://`; nothing in it is expanded but `{job}`."""
    value = text(node, where)
    if value is None:
        return None
    trouble = _trouble_of_path(value)
    if trouble:
        where.wrong(trouble)
        return None
    return value


def _trouble_of_path(value: str) -> str:
    strange = [s for s in _PLACEHOLDER.findall(value) if s != "{job}"]
    address = _ADDRESS.match(value)
    if strange:
        return f"has {shown(strange[0])}; only `{{job}}` is filled in"
    if "\n" in value:
        return "must be a path, in one line"
    if address is None:
        expanded = value.startswith("~") or "$" in value
        rule = f"is not expanded: {shown(value)}; write the path out"
        return rule if expanded else ""
    if address[1] != "storage":
        return (
            f"is an address of `{address[1]}`: a job names a path or `storage://`, "
            "which the administrator maps to any store"
        )
    if _STORAGE.fullmatch(value) is None or ".." in value.split("/"):
        return f"must be `storage://STORE/path`, not {shown(value)}"
    return ""


def plain_path(node: Node, where: Where) -> str | None:
    """Read a path that is the same for every job."""
    value = path(node, where)
    if value is not None and "{" in value:
        where.wrong("cannot have `{job}`: it is there before the job is")
        return None
    return value


def secret(node: Node, where: Where) -> str | None:
    """Read the name of a secret; anything else may be the secret, so it is not shown.

    Never let a message repeat it.
    """
    value = text(node, where)
    if value is not None and _SECRET.fullmatch(value) is None:
        where.wrong(
            "must be the name of a secret, `secret://PROVIDER/NAME`, and never the "
            "secret itself"
        )
        return None
    return value
