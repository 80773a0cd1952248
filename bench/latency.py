"""From the HTTP request to the first rank's exec, and from a killed rank to the next.

The rank itself writes the time it was executed at. The first measures submissions one
after the other on an idle stack; the second kills one rank of two on one node, whose
sibling ends at once on TERM, so that no grace is waited for.
"""

import os
import signal
import statistics
from pathlib import Path

from bench.embedded import FINAL, stack, submit, wait_final, wait_for
from bench.report import Figure, percentile, report, spread
from trainmaster.client.client import Client
from trainmaster.runtime.clock import wall

SUBMISSIONS, KILLS, WARM_UP = 100, 20, 5
_NOTE_TIME = (
    "at=$TM_OUTPUT_DIR/at.$TM_ATTEMPT.$RANK; date +%s.%N > $at.new; mv $at.new $at"
)


def _executed_at(folder: Path, attempt: int) -> float | None:
    times = [float(file.read_text()) for file in folder.glob(f"at.{attempt}.[0-9]")]
    return min(times, default=None)


def _submission(client: Client, folder: Path, number: int) -> float:
    output = folder / f"s{number}"
    spec = {
        "name": f"s{number}",
        "command": ["/bin/sh", "-c", _NOTE_TIME],
        "output_directory": str(output),
    }
    began = wall().timestamp()
    job = submit(client, spec, directory=folder)
    executed = wait_for("exec", lambda: _executed_at(output, 1))
    if wait_final(client, job) != "succeeded":
        raise SystemExit(f"job {job} did not succeed")
    return float(executed) - began


def _restart(client: Client, folder: Path, number: int) -> float:
    output = folder / f"k{number}"
    pid = "echo $$ > $TM_OUTPUT_DIR/pid.$TM_ATTEMPT.$RANK"
    script = f"{_NOTE_TIME}; {pid}; exec sleep 600"
    spec = {
        "name": f"k{number}",
        "command": ["/bin/sh", "-c", script],
        "ranks_per_node": 2,
        "output_directory": str(output),
    }
    job = submit(client, spec, directory=folder)
    pid_file = output / "pid.1.1"
    wait_for("rank 1", lambda: pid_file.exists() and pid_file.read_text().strip())
    wait_for("running", lambda: client.job(job)["state"] == "running")
    began = wall().timestamp()
    os.kill(int(pid_file.read_text()), signal.SIGKILL)
    executed = wait_for("next attempt", lambda: _executed_at(output, 2))
    client.change("cancel", "default", job)
    wait_for("over", lambda: client.job(job)["state"] in FINAL)
    return float(executed) - began


def main() -> None:
    """Measure both."""
    with stack() as (client, data):
        folder = data / "bench"
        folder.mkdir()
        starts = [_submission(client, folder, i) for i in range(SUBMISSIONS + WARM_UP)]
        restarts = [_restart(client, folder, i) for i in range(KILLS)]
    starts = [1000 * s for s in starts[WARM_UP:]]
    restarts = [1000 * s for s in restarts]
    report(
        "latency",
        [
            Figure(
                name="submit_to_exec_p50",
                value=statistics.median(starts),
                unit="ms",
                budget="< 100",
                spread=spread(starts),
            ),
            Figure(
                name="submit_to_exec_p99",
                value=percentile(starts, 0.99),
                unit="ms",
                budget="< 300",
            ),
            Figure(
                name="kill_to_next_exec_p50",
                value=statistics.median(restarts),
                unit="ms",
                budget="< 300",
                spread=spread(restarts),
            ),
        ],
        method=f"{SUBMISSIONS} submissions one by one after {WARM_UP}; {KILLS} kills; "
        "from before the request / the kill until the time the rank wrote",
    )


if __name__ == "__main__":
    main()
