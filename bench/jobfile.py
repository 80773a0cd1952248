"""Reading job files: a small one, a large wrong one, and the worst there can be.

Each is read as submission reads it, without its cache of readings; nothing else runs in
the process. The figures are of one core.
"""

import gc
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from bench.report import Figure, report, spread
from trainmaster.core.errors import SpecRejectedError
from trainmaster.jobfile.installation import Site
from trainmaster.jobfile.json_text import read_json
from trainmaster.jobfile.limits import TEXT_BYTES_MAX, VALUES_MAX
from trainmaster.jobfile.reading import Source, read
from trainmaster.jobfile.yaml_text import read_yaml

ROOT = Path(__file__).parents[1]
SITE = Site(storage_root="/stores")
LINES = 10_000
SMALL = (ROOT / "examples" / "char_lm" / "train.yaml").read_text()
DIALECT = (ROOT / "examples" / "dialects" / "experiment.yaml").read_text()
JSON = '{"name": "lm", "command": ["python", "train.py"], "nodes": 2}'
LONG = "name: lm\ncommand: x\nenv:\n" + "".join(f"  K{i}: v\n" for i in range(LINES))
SHORT_LINES = "name: lm\n" + "".join(f"{i}:\n" for i in range(LINES))
WRONG = "name: lm\n" + "".join(f"acelerators_{i}: 1\n" for i in range(VALUES_MAX // 2))
MANY = "name: lm\ncommand: x\nlabels:\n" + "".join(
    f"  k{i}: v\n" for i in range(VALUES_MAX // 2 - 4)
)
_IMPORT = (
    "import time; t = time.perf_counter(); import {0}; print(time.perf_counter() - t)"
)


def _read(text: str, *, as_json: bool = False) -> None:
    # The cache would answer from the second time on.
    read.__wrapped__(Source(text=text, directory="/w", json=as_json), SITE)


def _refuse(text: str) -> None:
    try:
        _read(text)
    except SpecRejectedError:
        return
    raise SystemExit("a wrong file was taken")


def _milliseconds(act: Callable[[], object], times: int) -> list[float]:
    act()
    gc.disable()
    found: list[float] = []
    for _ in range(times):
        began = perf_counter()
        act()
        found.append(1000 * (perf_counter() - began))
    gc.enable()
    return found


def _import_milliseconds(module: str) -> float:
    command = [sys.executable, "-c", _IMPORT.format(module)]
    taken = [
        float(
            subprocess.run(command, check=True, capture_output=True, text=True).stdout
        )
        for _ in range(5)
    ]
    return 1000 * statistics.median(taken)


def _figure(name: str, milliseconds: list[float], budget: str = "") -> Figure:
    return Figure(
        name=name,
        value=statistics.median(milliseconds),
        unit="ms",
        budget=budget,
        spread=spread(milliseconds),
    )


def main() -> None:
    """Measure all of them."""
    limit = f"{TEXT_BYTES_MAX // 1024} KiB"
    figures = [
        _figure("small_file", _milliseconds(lambda: _read(SMALL), 1000), "< 1"),
        _figure("small_file_tree", _milliseconds(lambda: read_yaml(SMALL), 1000)),
        _figure("small_json", _milliseconds(lambda: _read(JSON, as_json=True), 1000)),
        _figure("small_json_tree", _milliseconds(lambda: read_json(JSON), 1000)),
        _figure(
            "dialect",
            _milliseconds(lambda: _read(f"{DIALECT}command: x\n"), 1000),
            "< 1",
        ),
        _figure(
            f"refused_{LINES}_lines_over_{limit}",
            _milliseconds(lambda: _refuse(LONG), 20),
            "< 100",
        ),
        _figure(
            f"refused_{LINES}_lines_under_{limit}",
            _milliseconds(lambda: _refuse(SHORT_LINES), 20),
            "< 100",
        ),
        _figure(
            f"refused_{VALUES_MAX // 2}_misspelt_lines",
            _milliseconds(lambda: _refuse(WRONG), 10),
            "< 100",
        ),
        _figure(
            f"taken_{VALUES_MAX // 2}_lines", _milliseconds(lambda: _read(MANY), 20)
        ),
        Figure(
            name="import",
            value=_import_milliseconds("trainmaster.jobfile.reading"),
            unit="ms",
            beside=f"core.spec {_import_milliseconds('trainmaster.core.spec'):.0f}",
        ),
    ]
    report(
        "jobfile",
        figures,
        method="reading.read without its cache, one process, no garbage collection; "
        "medians; import: median of 5 fresh interpreters",
    )


if __name__ == "__main__":
    main()
