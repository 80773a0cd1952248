"""What every node has and what is charged on it: the rooms a plan may use.

Charged is what jobs hold and have not given back, of all their attempts. Two holders of
one device are counted, so that a device is free only when both are gone.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from typing_extensions import override

from trainmaster.core.ids import JobKey, NodeKey
from trainmaster.core.nodes import Node
from trainmaster.core.record import Job
from trainmaster.core.values import MemberSlot
from trainmaster.scheduler.labels import Frame, frame_of
from trainmaster.scheduler.snapshot import Room


@dataclass(slots=True, kw_only=True)
class Charge:
    """What is taken on one node, and by whom."""

    devices: Counter[int] = field(default_factory=Counter[int])
    cpus: int = 0
    memory_bytes: int = 0
    tenants: Counter[JobKey] = field(default_factory=Counter[JobKey])


_NOTHING = Charge()
_Framed = tuple[Node, Frame]


@dataclass(slots=True)
class Inventory:
    """Charges by node, and rooms by pool made from them when asked for."""

    charges: dict[NodeKey, Charge] = field(default_factory=dict[NodeKey, Charge])
    _rooms: dict[str, dict[str, Room]] = field(
        default_factory=dict[str, dict[str, Room]]
    )
    _frames: dict[NodeKey, _Framed] = field(default_factory=dict[NodeKey, _Framed])
    _stale: dict[str, set[NodeKey]] = field(default_factory=dict[str, set[NodeKey]])

    def charge(self, job: Job) -> None:
        """Take what a job holds."""
        for slot in held(job):
            key = NodeKey(job.pool, slot.node)
            charge = self._charge_of(key)
            charge.devices.update(slot.accelerators)
            charge.cpus += _cpus(job)
            charge.memory_bytes += job.spec.memory_bytes_per_node
            charge.tenants[job.key] += 1
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
            charge.tenants[job.key] -= 1
            if charge.tenants[job.key] <= 0:
                del charge.tenants[job.key]
            if not charge.tenants:
                del self.charges[key]
            self.touch(key)

    def _charge_of(self, key: NodeKey) -> Charge:
        known = self.charges.get(key)
        if known is None:
            known = self.charges[key] = Charge()
        return known

    def touch(self, key: NodeKey) -> None:
        """Note that a node's room must be made anew."""
        self._stale.setdefault(key.pool, set()).add(key)

    def rooms(self, pool: str, nodes: Mapping[NodeKey, Node]) -> Mapping[str, Room]:
        """List the rooms of a pool's registered nodes, to be read at once."""
        rooms = self._rooms.setdefault(pool, {})
        for key in self._stale.pop(pool, ()):
            node = nodes.get(key)
            if node is None or node.registered_at is None:
                rooms.pop(key.node, None)
            else:
                rooms[key.node] = self._room(key, node)
        return rooms

    def pools(self) -> Iterable[str]:
        """Name the pools that have nodes."""
        return {*self._rooms, *self._stale}

    def tenants(self, pool: str) -> Mapping[str, Iterable[JobKey]]:
        """Say who holds something on each node of a pool."""
        return _Tenants(self.charges, pool)

    def _room(self, key: NodeKey, node: Node) -> Room:
        known = self._frames.get(key)
        if known is None or known[0] is not node:
            known = self._frames[key] = (node, frame_of(key.node, node))
        frame, charge = known[1], self.charges.get(key, _NOTHING)
        taken = charge.devices
        devices = range(frame.look.accelerators)
        return Room(
            frame,
            tuple(i for i in devices if i not in taken) if taken else tuple(devices),
            frame.look.cpus - charge.cpus,
            frame.look.memory_bytes - charge.memory_bytes,
        )


@dataclass(frozen=True, slots=True)
class _Tenants(Mapping[str, Iterable[JobKey]]):
    """The holders on the nodes of one pool, read from the charges."""

    charges: Mapping[NodeKey, Charge]
    pool: str

    @override
    def __getitem__(self, node: str) -> Iterable[JobKey]:
        return self.charges[NodeKey(self.pool, node)].tenants

    @override
    def __iter__(self) -> Iterator[str]:
        return (key.node for key in self.charges if key.pool == self.pool)

    @override
    def __len__(self) -> int:
        return sum(1 for _ in self)


def held(job: Job) -> Iterable[MemberSlot]:
    """List all slots a job has not given back."""
    return (slot for slots in job.unreclaimed.values() for slot in slots)


def _cpus(job: Job) -> int:
    return 0 if job.spec.accelerators_per_node else job.spec.cpus_per_node
