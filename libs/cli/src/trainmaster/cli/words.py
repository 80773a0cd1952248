"""Decides how a number, a time or a list reads in a column. Pure."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, cast

NONE: Final = "-"
_SIZES: Final = (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))
_STEPS: Final = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


def as_fields(value: Any) -> Mapping[str, Any]:
    """Take a value as fields; what is none has none."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def as_list(value: Any) -> Sequence[Any]:
    """Take a value as a list; what is none is empty."""
    kind: type[Any] = value.__class__
    items: Sequence[Any] = value if issubclass(kind, list | tuple) else ()
    return items


def text(row: Mapping[str, Any], key: str) -> str:
    """Show a field, a dash when there is nothing."""
    value = row.get(key)
    if isinstance(value, str):
        return value or NONE
    if isinstance(value, Sequence):
        return ", ".join(map(str, as_list(value))) or NONE
    return NONE if value is None else str(value)


def number(row: Mapping[str, Any], key: str, *, digits: int = 4) -> str:
    """Show a measured number with few digits."""
    value = row.get(key)
    if value is None:
        return NONE
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def line(row: Mapping[str, Any], key: str) -> str:
    """Show a text in one line."""
    return " ".join(text(row, key).split())


def moment(told: Any) -> datetime | None:
    """Read a time as the server writes it."""
    try:
        return datetime.fromisoformat(str(told)) if told else None
    except ValueError:
        return None


def age(told: Any, now: datetime | None) -> str:
    """Show how long ago a time is: 42s, 5m, 3h20m, 2d4h."""
    at = moment(told)
    if at is None or now is None:
        return NONE
    seconds = max(0, int((now - at).total_seconds()))
    for index, (unit, size) in enumerate(_STEPS):
        if seconds >= size:
            rest = _rest(seconds % size, index) if unit in {"d", "h"} else ""
            return f"{seconds // size}{unit}{rest}"
    return "0s"


def _rest(seconds: int, index: int) -> str:
    unit, size = _STEPS[index + 1]
    return f"{seconds // size}{unit}" if seconds >= size else ""


def clock(told: Any) -> str:
    """Show a time of day here, to the millisecond."""
    at = moment(told)
    if at is None:
        return str(told or NONE)
    return at.astimezone().strftime("%H:%M:%S.%f")[:-3]


def day(told: Any) -> str:
    """Show a date and time of day here, to the second."""
    at = moment(told)
    if at is None:
        return str(told or NONE)
    return at.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def size(count: Any) -> str:
    """Show a number of bytes as people say it: 512 MiB, 1.5 GiB."""
    bytes_ = int(count or 0)
    for unit, one in _SIZES:
        if bytes_ >= one:
            return f"{bytes_ / one:.1f}".removesuffix(".0") + f" {unit}"
    return f"{bytes_} B" if bytes_ else NONE


def nodes(row: Mapping[str, Any]) -> str:
    """Show nodes, whether they are named, described or only counted."""
    value = row.get("nodes")
    named = [str(as_fields(each).get("node", each)) for each in as_list(value)]
    return ", ".join(named) or text(row, "nodes")
