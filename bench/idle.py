"""What the embedded stack costs while nothing happens: memory and processor."""

import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from bench.embedded import data_folder, remove, start, stop
from bench.report import Figure, report
from trainmaster.runtime.embedded import EmbeddedNats, EmbeddedPostgres

SETTLE_SECONDS, MEASURED_SECONDS = 10, 30


def _processes(root: int, data: Path) -> Iterator[psutil.Process]:
    """Yield the stack's process, its servers and their children."""
    servers = (EmbeddedNats(data=data).pid, EmbeddedPostgres(data=data).pid)
    found: dict[int, psutil.Process] = {}
    for pid in (root, *servers):
        if pid is None:
            raise SystemExit("a server does not run")
        process = psutil.Process(pid)
        found |= {p.pid: p for p in (process, *process.children(recursive=True))}
    yield from found.values()


def main() -> None:
    """Measure an idle stack with one node."""
    data = data_folder()
    process, _ = start(data)
    try:
        time.sleep(SETTLE_SECONDS)
        found = list(_processes(process.pid, data))
        before = sum(sum(p.cpu_times()[:2]) for p in found)
        time.sleep(MEASURED_SECONDS)
        after = sum(sum(p.cpu_times()[:2]) for p in found if p.is_running())
        memory = {p.name(): 0.0 for p in found}
        for each in found:
            if each.is_running():
                memory[each.name()] += each.memory_full_info().pss / 2**20
    finally:
        stop(process)
        remove(data)
    parts = ", ".join(f"{name} {mib:.0f} MiB" for name, mib in sorted(memory.items()))
    report(
        "idle",
        [
            Figure(
                name="idle_memory",
                value=sum(memory.values()) * 2**20 / 1e6,
                unit="MB PSS",
                budget="< 250 MB",
                spread=parts,
            ),
            Figure(
                name="idle_cpu",
                value=100 * (after - before) / MEASURED_SECONDS,
                unit="% of a core",
                budget="< 2",
            ),
        ],
        method=f"one node, {SETTLE_SECONDS} s after ready, over {MEASURED_SECONDS} s; "
        f"{len(found)} processes",
    )


if __name__ == "__main__":
    main()
