"""Optional reports from training code. Never raises, never blocks, needs nothing.

Outside a job all of it does nothing, so it may stay in the code:

    from trainmaster import hook

    start = hook.resume_path()
    hook.report(step, loss=loss)
"""

import json
import math
import os
import time
from typing import Final

_LINE_BYTES_MAX: Final = 4096
"""What a single O_APPEND write keeps whole among writers."""


def report(step: int, **metrics: float) -> bool:
    """Report numbers of one step; returns whether they were written.

    Appends one JSON line to the file `TM_METRICS_FILE` names. Non-finite numbers are
    written as the strings "nan", "inf", "-inf", which JSON has no numbers for.
    """
    path = os.environ.get("TM_METRICS_FILE", "")
    if not path:
        return False
    now = time.time()  # noqa: TID251 the hook lives alone in the training
    fields = {"v": 1, "t": now, "step": step, "phase": "step"}
    try:
        values = {name: _written(value) for name, value in metrics.items()}
        line = json.dumps({**fields, **values}).encode() + b"\n"
        return len(line) <= _LINE_BYTES_MAX and _append(path, line)
    except (OSError, TypeError, ValueError):
        return False  # a training must not end because a number cannot be written


def resume_path() -> str | None:
    """Name the checkpoint to begin at, None to begin from nothing."""
    return os.environ.get("TM_RESUME_FROM") or None


def resume_step() -> int:
    """Name the step of that checkpoint, 0 for none."""
    told = os.environ.get("TM_RESUME_STEP", "")
    return int(told) if told.isdecimal() else 0


def _append(path: str, line: bytes) -> bool:
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK
    descriptor = os.open(path, flags, 0o644)
    try:
        return os.write(descriptor, line) == len(line)
    finally:
        os.close(descriptor)


def _written(value: float) -> float | str:
    number = float(value)
    return number if math.isfinite(number) else str(number)
