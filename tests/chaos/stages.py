"""Brings jobs into every state of the table and holds them there, by signals alone.

Agents and the launcher are frozen at the moments between two reports, so that each job
stands still in its state until somebody thaws them.
"""

import signal
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from trainmaster.core.events import Event
from trainmaster.core.facts import MemberPrepared, MemberStarted, RankExited
from trainmaster.core.ids import MemberKey
from trainmaster.core.record import JobState
from trainmaster.testkit.cluster import Cluster, until

AGENTS = ("agent-n1", "agent-n2")
T = TypeVar("T", bound=Event)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where jobs of one test live, and what their names begin with."""

    running: Cluster
    folder: Path

    def go(self, name: str) -> Path:
        """Name the file that a job waits for."""
        return self.folder / f"{name}.go"

    def submit(self, name: str, script: str = "", **spec: object) -> str:
        """Submit a job of one rank that waits for its file, then exits 0."""
        self.folder.chmod(0o777)
        wait = f"while [ ! -e {self.go(name)} ]; do sleep 0.05; done"
        asked: dict[str, object] = {
            "command": ["/bin/sh", "-c", script or wait],
            "accelerators_per_node": 1,
            "work_directory": str(self.folder),
            "output_directory": str(self.folder / name),
            "stop_grace": 1,
            **spec,
        }
        return self.running.submit(f"{self.folder.name}-{name}"[-60:], **asked)


def stubborn(go: Path, ready: Path) -> str:
    """Write a script that TERM does not end; only its file does."""
    return f"trap '' TERM; touch {ready}; while [ ! -e {go} ]; do sleep 0.05; done"


def everybody(running: Cluster, signum: signal.Signals) -> None:
    """Freeze or thaw all agents."""
    for agent in AGENTS:
        running.signal(agent, signum)


async def in_every_state(place: Place) -> dict[JobState, str]:
    """Bring one job into each state; all agents are frozen afterwards."""
    running = place.running
    first = {
        JobState.RUNNING: place.submit("running"),
        JobState.SETTLING: place.submit("settling", _exits_7(place.go("settling"))),
        JobState.STOPPING: place.submit(
            "stopping",
            stubborn(place.go("stopping"), place.folder / "ready"),
            stop_grace=30,
            time_limit=1,
        ),
    }
    await running.reaches(first[JobState.RUNNING], JobState.RUNNING)
    await running.reaches(first[JobState.SETTLING], JobState.RUNNING)
    await until("the stubborn one listens", (place.folder / "ready").exists)
    await running.reaches(first[JobState.STOPPING], JobState.STOPPING)
    return {**first, **await _frozen_between_reports(place, first[JobState.SETTLING])}


async def _frozen_between_reports(place: Place, settling: str) -> dict[JobState, str]:
    """Let one rank end and one job prepare while the launcher cannot hear of it."""
    running = place.running
    everybody(running, signal.SIGSTOP)
    starting = place.submit("starting")
    node = (await running.reaches(starting, JobState.PLACED)).nodes[0]
    await until("the order to prepare", lambda: _ordered(running, node, starting))
    running.signal("launcher", signal.SIGSTOP)
    everybody(running, signal.SIGCONT)
    place.go("settling").touch()
    await until("one exits", lambda: _reported(running, settling, RankExited))
    await until("one prepares", lambda: _reported(running, starting, MemberPrepared))
    everybody(running, signal.SIGSTOP)
    placed = place.submit("placed")
    await running.reaches(placed, JobState.PLACED)
    running.signal("launcher", signal.SIGCONT)
    await running.reaches(starting, JobState.STARTING)
    await running.reaches(settling, JobState.SETTLING)
    return {JobState.STARTING: starting, JobState.PLACED: placed}


def _exits_7(go: Path) -> str:
    return f"while [ ! -e {go} ]; do sleep 0.05; done; exit 7"


async def _ordered(running: Cluster, node: str, job: str) -> int:
    subject = f"tm.assign.local.{node}.{job}"
    return await (await running.log()).last("ASSIGN", [subject])


async def _reported(running: Cluster, job: str, kind: type) -> bool:
    return any(
        isinstance(entry.event, kind)
        for entry in await running.entries()
        if isinstance(entry.key, MemberKey) and entry.key.job == job
    )


async def events_of(running: Cluster, job: str, kind: type[T]) -> list[T]:
    """List a job's events of one kind."""
    return [
        entry.event
        for entry in await running.entries()
        if isinstance(entry.event, kind) and getattr(entry.key, "job", "") == job
    ]


async def pids_of(running: Cluster, jobs: Collection[str]) -> set[int]:
    """List the processes that some jobs' agents started."""
    return {
        pid
        for entry in await running.entries()
        if isinstance(entry.event, MemberStarted)
        and isinstance(entry.key, MemberKey)
        and entry.key.job in jobs
        for pid in entry.event.pids
    }


def alive(pids: Collection[int]) -> set[int]:
    """List those of some processes that are still there."""
    return {pid for pid in pids if Path(f"/proc/{pid}").exists()}


async def none_left(running: Cluster, jobs: Collection[str]) -> None:
    """Wait until no process of some jobs is there any more."""
    pids = await pids_of(running, jobs)
    await until(f"none of {pids} is left", lambda: not alive(pids))
