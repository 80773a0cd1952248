"""Kills one process at named points, one life after the other, and starts it again."""

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from trainmaster.testkit.cluster import Cluster, until

_AGENT = "agent-"


async def dies_at(running: Cluster, name: str, points: Sequence[str]) -> None:
    """Let a process die at each point in turn, then start it for good."""
    running.kill(name)
    for point in points:
        start(running, name, failpoints=point)
        await death(running, name, point)
    start(running, name)


async def death(running: Cluster, name: str, point: str) -> None:
    """Wait until a process has died by itself, at its failpoint."""
    process = running.processes[name]
    await until(f"{name} dies at {point}", lambda: process.poll() is not None)
    assert process.returncode == -9, running.log_of(name)


def start(running: Cluster, name: str, *, failpoints: str = "") -> None:
    """Start a service or an agent."""
    if not name.startswith(_AGENT):
        running.start_service(name, failpoints=failpoints)
        return
    with _in_environment(failpoints):
        running.start_agent(name.removeprefix(_AGENT))


@contextmanager
def _in_environment(failpoints: str) -> Generator[None]:
    """An agent inherits the environment of the tests, in which nothing is armed."""
    os.environ["TM_FAILPOINTS"] = failpoints
    try:
        yield
    finally:
        del os.environ["TM_FAILPOINTS"]
