"""Owns what chaos leaves behind: no process and no folder, also after a failure.

`TM_CHAOS_KEEP=1` keeps the folder of logs, servers and nodes and prints where it is.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

from trainmaster.launcher.backends.directory import Directory
from trainmaster.launcher.backends.process import ProcessBackend
from trainmaster.testkit.cluster import Cluster

KEEP: Final = "TM_CHAOS_KEEP"


@asynccontextmanager
async def whole_cluster(
    *, nodes: int, accelerators: int, say: Callable[[str], None]
) -> AsyncGenerator[Cluster]:
    """Run a Trainmaster of processes; each way out is taken, whichever fails."""
    async with AsyncExitStack() as ends:
        data = ends.enter_context(_folder(say))
        running = Cluster(data, nodes=nodes, accelerators=accelerators)
        ends.push_async_callback(sweep_ranks, data)
        ends.push_async_callback(running.stack.postgres.remove)
        ends.push_async_callback(running.stack.nats.stop)
        ends.callback(_kill_all, running)
        ends.push_async_callback(running.stop)
        await running.start()
        yield running


async def sweep_ranks(data: Path) -> None:
    """End what still runs below a data directory: ranks outlive agents and servers."""
    for root in _rank_roots(data):
        backend = ProcessBackend(root=root, python=sys.executable, cgroups=False)
        for attempt in Directory(root).attempts():
            proof = await backend.sweep(attempt)
            if not proof.clean:
                raise AssertionError(f"{attempt} below {root}: {proof.detail}")


def _rank_roots(data: Path) -> list[Path]:
    return list(data.glob("nodes/*/ranks"))


@contextmanager
def _folder(say: Callable[[str], None]) -> Generator[Path]:
    data = Path(tempfile.mkdtemp(prefix="tm-chaos-"))
    data.chmod(0o711)  # PostgreSQL may have to be another user
    try:
        yield data
    finally:
        if os.environ.get(KEEP):
            say(f"\n{KEEP}: kept {data}")
        else:
            shutil.rmtree(data)


def _kill_all(running: Cluster) -> None:
    for process in running.processes.values():
        process.kill()
        process.wait()
