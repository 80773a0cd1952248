"""What every node has and what is charged on it: the rooms a plan may use.

Charged is what jobs hold and have not given back, of all their attempts. Two holders of
one device are counted, so that a device is free only when both are gone.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from trainmaster.core.ids import NodeKey
from trainmaster.core.record import Job
from trainmaster.core.values import MemberSlot
from trainmaster.scheduler.nodes import Node
from trainmaster.scheduler.snapshot import Room


@dataclass(slots=True, kw_only=True)
class Charge:
    """What is taken on one node."""

    devices: Counter[int] = field(default_factory=Counter[int])
    cpus: int = 0
    memory_bytes: int = 0

    @property
    def nothing(self) -> bool:
        """Nobody holds anything here."""
        return not (self.devices or self.cpus or self.memory_bytes)


@dataclass(slots=True)
class Inventory:
    """Charges by node, and rooms by pool made from them when asked for."""

    charges: dict[NodeKey, Charge] = field(default_factory=dict[NodeKey, Charge])
    _rooms: dict[str, dict[str, Room]] = field(
        default_factory=dict[str, dict[str, Room]]
    )
    _stale: set[NodeKey] = field(default_factory=set[NodeKey])

    def charge(self, job: Job) -> None:
        """Take what a job holds."""
        for slot in held(job):
            key = NodeKey(job.pool, slot.node)
            charge = self._charge_of(key)
            charge.devices.update(slot.accelerators)
            charge.cpus += _cpus(job)
            charge.memory_bytes += job.spec.memory_bytes_per_node
            self.touch(key)

    def release(self, job: Job) -> None:
        """Give back what a job held."""
        for slot in held(job):
            key = NodeKey(job.pool, slot.node)
            charge = self._charge_of(key)
            charge.devices.subtract(slot.accelerators)
            for index in slot.accelerators:
                if charge.devices[index] <= 0:
                    del charge.devices[index]
            charge.cpus -= _cpus(job)
            charge.memory_bytes -= job.spec.memory_bytes_per_node
            if charge.nothing:
                del self.charges[key]
            self.touch(key)

    def _charge_of(self, key: NodeKey) -> Charge:
        known = self.charges.get(key)
        if known is None:
            known = self.charges[key] = Charge()
        return known

    def touch(self, key: NodeKey) -> None:
        """Note that a node's room must be made anew."""
        self._stale.add(key)

    def rooms(self, pool: str, nodes: Mapping[NodeKey, Node]) -> dict[str, Room]:
        """List the rooms of a pool's registered nodes."""
        rooms = self._rooms.setdefault(pool, {})
        for key in [key for key in self._stale if key.pool == pool]:
            self._stale.discard(key)
            node = nodes.get(key)
            if node is None or not node.registered:
                rooms.pop(key.node, None)
            else:
                rooms[key.node] = _room(key, node, self.charges.get(key, Charge()))
        return dict(rooms)


def held(job: Job) -> Iterable[MemberSlot]:
    """List all slots a job has not given back."""
    return (slot for slots in job.unreclaimed.values() for slot in slots)


def _cpus(job: Job) -> int:
    return 0 if job.spec.accelerators_per_node else job.spec.cpus_per_node


def _room(key: NodeKey, node: Node, charge: Charge) -> Room:
    return Room(
        node=key.node,
        accelerators=node.accelerators,
        cpus=node.cpus,
        memory_bytes=node.memory_bytes,
        devices_free=tuple(
            index for index in range(node.accelerators) if index not in charge.devices
        ),
        cpus_free=node.cpus - charge.cpus,
        memory_free_bytes=node.memory_bytes - charge.memory_bytes,
        trouble=node.trouble,
    )
