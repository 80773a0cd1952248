"""How a figure is written: one line, the same in bench/results/<name>.json."""

import json
import os
import platform
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

RESULTS: Final = Path(__file__).parent / "results"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured value, its budget and what stands beside it."""

    name: str
    value: float
    unit: str
    budget: str = ""
    beside: str = ""
    spread: str = ""

    def line(self) -> str:
        """Write the figure as people read it."""
        asides = [
            f"{label} {text}"
            for label, text in (
                ("spread", self.spread),
                ("budget", self.budget),
                ("beside", self.beside),
            )
            if text
        ]
        aside = f" ({', '.join(asides)})" if asides else ""
        return f"{self.name} {self.value:.4g} {self.unit}{aside}"


def report(name: str, figures: Sequence[Figure], *, method: str) -> None:
    """Print the figures and keep them."""
    for figure in figures:
        print(figure.line(), flush=True)
    RESULTS.mkdir(exist_ok=True)
    content = {
        "name": name,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),  # noqa: TID251
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "load": os.getloadavg()[0],
        "method": method,
        "figures": [asdict(figure) for figure in figures],
    }
    (RESULTS / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n")


def percentile(values: Sequence[float], share: float) -> float:
    """Find the value that `share` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def spread(values: Sequence[float]) -> str:
    """Show the least, the median and the most."""
    low, high = min(values), max(values)
    return f"{low:.3g} … {statistics.median(values):.3g} … {high:.3g} of {len(values)}"
