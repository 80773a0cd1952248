"""A node whose backend is real, on every event loop we support.

Every rank, whatever a test did to it, is swept when its test is over.
"""

import asyncio
import itertools
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import uvloop

from trainmaster.core.ids import JobId
from trainmaster.launcher.backends import proc
from trainmaster.launcher.backends.model import (
    AttemptKey,
    Identity,
    JobUser,
    RankKey,
    RankRequest,
    RankSpec,
    Spawned,
    SpawnFailed,
)
from trainmaster.launcher.backends.process import ProcessBackend, rank_request
from trainmaster.runtime.clock import pause

WITHIN_SECONDS = 10.0
ATTEMPT = AttemptKey(job=JobId("01JOB"), number=1)
RANK = RankKey(attempt=ATTEMPT, rank=0)
PATH = "/usr/local/bin:/usr/bin:/bin"

_tokens = itertools.count()


def pytest_asyncio_loop_factories() -> Mapping[
    str, Callable[[], asyncio.AbstractEventLoop]
]:
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


async def eventually(
    condition: Callable[[], bool], *, within_seconds: float = WITHIN_SECONDS
) -> None:
    """Wait until something is true, or fail."""
    deadline = time.monotonic() + within_seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come true in time"
        await pause(0.005)


@dataclass(kw_only=True)
class Node:
    """A node: its lasting directory, and the backend an agent would hold now."""

    root: Path
    output: Path
    backends: list[ProcessBackend] = field(default_factory=list[ProcessBackend])

    @property
    def backend(self) -> ProcessBackend:
        return self.backends[-1]

    def restart(self, *, cgroups: bool = True) -> ProcessBackend:
        """Do what a restarted agent does: begin anew on the same directory."""
        self.backends.append(
            ProcessBackend(root=self.root, python=sys.executable, cgroups=cgroups)
        )
        return self.backend

    def spec(
        self,
        *argv: str,
        key: RankKey = RANK,
        user: JobUser | None = None,
        log: Path | None = None,
    ) -> RankSpec:
        return RankSpec(
            key=key,
            argv=argv,
            environment={"PATH": PATH, "OUT": str(self.output)},
            work_directory=self.output,
            log=log or self.log(key),
            user=user,
        )

    def request(self, spec: RankSpec) -> RankRequest:
        return rank_request(spec, token=f"test-{os.getpid()}-{next(_tokens)}")

    async def spawn(
        self, *argv: str, key: RankKey = RANK, user: JobUser | None = None
    ) -> Spawned | SpawnFailed:
        spec = self.spec(*argv, key=key, user=user)
        return await self.backend.spawn(self.request(spec))

    async def run(self, *argv: str, key: RankKey = RANK) -> Spawned:
        """Start a rank that must start."""
        outcome = await self.spawn(*argv, key=key)
        assert isinstance(outcome, Spawned), outcome.message
        return outcome

    async def shell(self, script: str, *, key: RankKey = RANK) -> Spawned:
        """Start a shell script that must start; $OUT is the output directory."""
        return await self.run("sh", "-c", script, key=key)

    def directory(self, key: RankKey = RANK) -> Path:
        attempt = self.root / key.attempt.job / str(key.attempt.number)
        return attempt / str(key.rank)

    def log(self, key: RankKey = RANK) -> Path:
        name = f"logs/attempt-{key.attempt.number}/rank-{key.rank}.log"
        return self.output / name

    async def said(self, name: str) -> str:
        """Wait for a file that a rank writes by rename, and read it."""
        path = self.output / name
        await eventually(lambda: path.exists() and path.read_text().endswith("\n"))
        return path.read_text().strip()

    async def process_in(self, name: str) -> Identity:
        """Wait for a file with a pid, and say who that is."""
        stat = proc.read_stat(int(await self.said(name)))
        assert stat is not None
        return Identity(
            pid=stat.pid, start_ticks=stat.start_ticks, boot_id=proc.boot_id()
        )


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    output = tmp_path / "output"
    output.mkdir()
    made = Node(root=tmp_path / "node", output=output)
    made.restart()
    yield made
    for attempt in {found.key.attempt for found in made.restart().find()}:
        await made.backend.sweep(attempt)
    for backend in made.backends:
        backend.release()


async def ended(identity: Identity) -> None:
    """Wait until a process has gone."""
    await eventually(lambda: not proc.is_alive(identity))
