"""Owns what the run tells the world: lines for people, JSON lines for machines."""

import json
import math
import os
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReport:
    """What one finished step measured."""

    step: int
    loss: float
    rate: float
    tokens: int
    seconds: float

    @property
    def tokens_per_second(self) -> float:
        """Speed of all ranks together."""
        return self.tokens / max(self.seconds, 1e-9)


def step_line(report: StepReport) -> str:
    """Form the line for people."""
    return (
        f"step {report.step} loss {report.loss:.4f} lr {report.rate:.5f} "
        f"{report.tokens_per_second:.0f} tok/s"
    )


def metric_line(report: StepReport, *, at: float) -> bytes:
    """Form the line for machines; JSON has no NaN, so that becomes a word."""
    fields = {
        "v": 1,
        "t": round(at, 3),
        "rank": 0,
        "step": report.step,
        "phase": "step",
        "loss": finite_or_word(report.loss),
        "tokens_per_s": round(report.tokens_per_second, 1),
    }
    return json.dumps(fields, allow_nan=False).encode() + b"\n"


def finite_or_word(value: float) -> float | str:
    """Keep a number, or name what is none: `nan`, `inf`, `-inf`."""
    return value if math.isfinite(value) else str(value)


class MetricsFile:
    """Appends whole lines, so that a reader never sees half of one."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        self._handle = os.open(path, flags, 0o600)

    def append(self, report: StepReport) -> None:
        """Write one line with one call."""
        os.write(self._handle, metric_line(report, at=time.time()))
