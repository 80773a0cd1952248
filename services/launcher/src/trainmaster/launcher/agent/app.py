"""What an agent is made of: a backend, its disk, and one reconciler for each job.

It hears ASSIGN of its node and says MEMBERS, heartbeats, output and metrics. It decides
nothing but how to bring about what is wanted. Ranks outlive it; a restarted agent finds
them by their directories.
"""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from trainmaster.core.errors import AlreadyExistsError, UnreachableError
from trainmaster.launcher.agent import host
from trainmaster.launcher.agent.asks import Asks
from trainmaster.launcher.agent.disk import Disk, claim
from trainmaster.launcher.agent.hands import Hands
from trainmaster.launcher.agent.heartbeat import beat
from trainmaster.launcher.agent.node import Node
from trainmaster.launcher.agent.orders import Jobs, follow
from trainmaster.launcher.agent.ports import Ports
from trainmaster.launcher.agent.report import Reporter
from trainmaster.launcher.agent.settings import (
    CLOSED_KEPT_SECONDS,
    RETRY_SECONDS,
    AgentSettings,
)
from trainmaster.launcher.backends import proc
from trainmaster.launcher.backends.process import ProcessBackend
from trainmaster.runtime.bus import Bus, connect
from trainmaster.runtime.clock import pause, wall
from trainmaster.runtime.log import Log
from trainmaster.runtime.permissions import agent_name
from trainmaster.runtime.telemetry import logger

_CLAIM_TRIES: Final = 15
_CLAIM_SECONDS: Final = 0.2
_TIDY_SECONDS: Final = 3600.0


async def run_local(told: Mapping[str, Any]) -> None:
    """Run the agent of a node of this machine inside a bigger process."""
    await run_agent(AgentSettings.model_validate(dict(told)))


async def run_agent(settings: AgentSettings) -> None:
    """Run one node's agent until cancelled; its ranks go on."""
    root = settings.root.absolute()
    held = await _only_one(settings.node, root)
    try:
        await _run_alone(settings, root)
    finally:
        os.close(held)


async def _run_alone(settings: AgentSettings, root: Path) -> None:
    bus = await _connected(settings)
    backend = ProcessBackend(root=root / "ranks", python=settings.python)
    hands = Hands(uid=os.geteuid())
    log = Log(bus, source=agent_name(settings.key), epoch=settings.epoch)
    try:
        async with asyncio.TaskGroup() as tasks:
            node = Node(
                key=settings.key,
                boot_id=proc.boot_id(),
                address=settings.address,
                network_interface=settings.network_interface,
                capacity=host.capacity(fake_accelerators=settings.fake_accelerators),
                backend=backend,
                disk=Disk(root),
                hands=hands,
                ports=_ports(settings),
                reporter=Reporter(log, tasks),
                bus=bus,
                tasks=tasks,
            )
            await _run(node, log, settings)
    finally:
        backend.release()
        await hands.close()
        await bus.close()


async def _run(node: Node, log: Log, settings: AgentSettings) -> None:
    """Take over what is there, then begin to listen."""
    jobs = Jobs(node)
    jobs.adopt(await asyncio.to_thread(node.backend.find))
    facts = host.facts(
        boot_id=node.boot_id, fake_accelerators=settings.fake_accelerators
    )
    node.tasks.create_task(beat(node, facts, lambda: len(jobs)))
    node.tasks.create_task(_tidy(node.disk))
    await Asks(node.bus, node.hands, node.tasks).listen(node.key)
    await follow(node, log, jobs)


async def _only_one(node: str, root: Path) -> int:
    """Take the node's directory for this agent alone; the one before may be ending."""
    for _ in range(_CLAIM_TRIES):
        held = claim(root)
        if held is not None:
            return held
        await pause(_CLAIM_SECONDS)
    raise AlreadyExistsError(
        kind="agent of node",
        name=node,
        hint=f"another process holds {root}; end it, or give this one its own --root",
    )


async def _connected(settings: AgentSettings) -> Bus:
    """Connect, however long that takes: ranks need no bus, and an agent no deadline."""
    while True:
        try:
            return await connect(settings.bus, name=agent_name(settings.key))
        except UnreachableError as error:
            logger("agent").warning("bus_unreachable", error=str(error))
            await pause(RETRY_SECONDS)


def _ports(settings: AgentSettings) -> Ports:
    return Ports(first=settings.port_first, last=settings.port_last, seed=settings.node)


async def _tidy(disk: Disk) -> None:
    """Forget, now and then, what was closed long ago."""
    while True:
        before = wall().timestamp() - CLOSED_KEPT_SECONDS
        await asyncio.to_thread(disk.forget_older, before_unix_seconds=before)
        await pause(_TIDY_SECONDS)
