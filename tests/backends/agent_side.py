"""An agent without its services: starts one rank, says so, and stays to be killed.

Run as `python agent_side.py ROOT OUTPUT SCRIPT`.
"""

import asyncio
import sys
from pathlib import Path

from trainmaster.core.ids import JobId
from trainmaster.launcher.backends.model import AttemptKey, RankKey, RankSpec, Spawned
from trainmaster.launcher.backends.process import ProcessBackend, rank_request


async def main(root: Path, output: Path, script: str) -> None:
    """Start the rank that the tests know as RANK."""
    key = RankKey(attempt=AttemptKey(job=JobId("01JOB"), number=1), rank=0)
    spec = RankSpec(
        key=key,
        argv=("sh", "-c", script),
        environment={"PATH": "/usr/local/bin:/usr/bin:/bin", "OUT": str(output)},
        work_directory=output,
        log=output / "logs/attempt-1/rank-0.log",
    )
    backend = ProcessBackend(root=root, python=sys.executable)
    outcome = await backend.spawn(rank_request(spec, token="agent-side"))
    pid = outcome.process.pid if isinstance(outcome, Spawned) else 0
    sys.stdout.write(f"{type(outcome).__name__} {pid}\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
