"""Reads one line of a metrics file. Pure; what is no such line is None.

`{"v":1,"t":1767225600.5,"rank":0,"step":10,"phase":"step","loss":2.3}`: all other
numbers are metrics. JSON has no NaN, so `"nan"`, `"inf"` and `"-inf"` are numbers too.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from trainmaster.core.messages import MetricSample

_NOT_METRICS: Final = frozenset({"v", "t", "mono", "rank", "step", "phase"})
_WORDS: Final = frozenset({"nan", "inf", "-inf", "infinity", "-infinity"})
_STEP_MAX: Final = 2**31 - 1


def read_sample(line: bytes) -> MetricSample | None:
    """Read a line; None when it is not a report of a step."""
    try:
        fields = json.loads(line)
    except ValueError:
        return None
    if not isinstance(fields, dict):
        return None
    return _sample(fields)  # pyright: ignore[reportUnknownArgumentType] - any JSON


def _sample(fields: Mapping[str, Any]) -> MetricSample | None:
    step = fields.get("step")
    if not isinstance(step, int) or not 0 <= step <= _STEP_MAX:
        return None
    numbers = {
        name: number
        for name, value in fields.items()
        if name not in _NOT_METRICS and (number := _number(value)) is not None
    }
    phase = fields.get("phase")
    return MetricSample(
        step=step,
        at=_time(fields.get("t")),
        phase=phase if isinstance(phase, str) else "",
        values=numbers,
    )


def _number(value: object) -> float | None:
    numeric = isinstance(value, int | float) and not isinstance(value, bool)
    if not numeric and str(value).lower() not in _WORDS:
        return None
    try:
        return float(str(value))
    except ValueError:
        return None


def _time(value: object) -> datetime | None:
    number = _number(value)
    if number is None:
        return None
    try:
        return datetime.fromtimestamp(number, UTC)
    except (ValueError, OverflowError, OSError):
        return None
