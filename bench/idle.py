"""What the embedded stack costs while nothing happens: memory and processor."""

import time
from collections.abc import Iterator

import psutil

from bench.embedded import data_folder, remove, start, stop
from bench.report import Figure, report

SETTLE_SECONDS, MEASURED_SECONDS = 10, 30


def _processes(root: int, data: str) -> Iterator[psutil.Process]:
    """Yield the stack's process and the servers that work below its directory."""
    yield psutil.Process(root)
    for process in psutil.process_iter(["name", "cwd", "cmdline"]):
        where = f"{process.info['cwd']} {process.info['cmdline']}"
        if process.pid != root and (data in where or _is_postgres_of(process, data)):
            yield process


def _is_postgres_of(process: psutil.Process, data: str) -> bool:
    pids = [p for p in (data + "/postgres",) if process.info["name"] == "postgres"]
    return bool(pids) and psutil.pid_exists(process.pid)


def main() -> None:
    """Measure an idle stack with one node."""
    data = data_folder()
    process, _ = start(data)
    try:
        time.sleep(SETTLE_SECONDS)
        found = list(_processes(process.pid, str(data)))
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
    parts = ", ".join(f"{name} {mib:.0f}" for name, mib in sorted(memory.items()))
    report(
        "idle",
        [
            Figure(
                name="idle_memory",
                value=sum(memory.values()),
                unit="MiB PSS",
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
