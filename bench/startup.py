"""`tm up`: from the process's start until every service is ready and the node known."""

import statistics

from bench.embedded import data_folder, remove, start, stop
from bench.report import Figure, report, spread

ROUNDS = 5


def main() -> None:
    """Measure the first start and starts with kept data."""
    first: list[float] = []
    kept: list[float] = []
    for _ in range(ROUNDS):
        data = data_folder()
        for times in (first, kept):
            process, seconds = start(data)
            stop(process)
            times.append(seconds)
        remove(data)
    report(
        "startup",
        [
            Figure(
                name="up_first",
                value=statistics.median(first),
                unit="s",
                budget="< 5",
                spread=spread(first),
            ),
            Figure(
                name="up_kept",
                value=statistics.median(kept),
                unit="s",
                budget="< 2.5",
                spread=spread(kept),
            ),
        ],
        method=f"{ROUNDS} data directories, each started twice; one node",
    )


if __name__ == "__main__":
    main()
