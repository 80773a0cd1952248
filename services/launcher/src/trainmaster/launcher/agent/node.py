"""What every job's reconciler works with on this node."""

import asyncio
from dataclasses import dataclass

from trainmaster.core.facts import Capacity
from trainmaster.core.ids import NodeKey
from trainmaster.launcher.agent.disk import Disk
from trainmaster.launcher.agent.hands import Hands
from trainmaster.launcher.agent.ports import Ports
from trainmaster.launcher.agent.report import Reporter
from trainmaster.launcher.backends.process import ProcessBackend
from trainmaster.runtime.bus import Bus


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node: its name, what it has, and the parts of its agent."""

    key: NodeKey
    boot_id: str
    address: str
    network_interface: str
    capacity: Capacity
    backend: ProcessBackend
    disk: Disk
    hands: Hands
    ports: Ports
    reporter: Reporter
    bus: Bus
    tasks: asyncio.TaskGroup
