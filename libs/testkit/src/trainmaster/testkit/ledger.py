"""Rule 5: what is charged is what is reserved and not given back, after every event.

The ledger reads placements and reclaims from the log by itself and never looks at
`Job.unreclaimed`; the two must agree after every single event.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from typing_extensions import override

from trainmaster.core.events import (
    Archived,
    AttemptPlaced,
    AttemptReclaimed,
    Transition,
    Verdict,
)
from trainmaster.core.facts import Capacity
from trainmaster.core.ids import JobKey, NodeKey
from trainmaster.core.record import Job
from trainmaster.core.values import MemberSlot
from trainmaster.testkit.replay import Replay, Step


class Device(NamedTuple):
    """One accelerator."""

    pool: str
    node: str
    number: int

    @override
    def __str__(self) -> str:
        """Name it for people."""
        return f"device {self.number} of {self.node} in pool {self.pool}"


class Holder(NamedTuple):
    """Whose attempt a device is charged to."""

    key: JobKey
    attempt: int

    @override
    def __str__(self) -> str:
        """Name it for people."""
        return f"attempt {self.attempt} of job {self.key.job}"


@dataclass(slots=True, kw_only=True)
class Ledger:
    """Who holds which device, and what each attempt holds by node."""

    holders: dict[Device, Holder] = field(default_factory=dict[Device, Holder])
    charged: dict[JobKey, dict[int, dict[str, MemberSlot]]] = field(
        default_factory=dict[JobKey, dict[int, dict[str, MemberSlot]]]
    )
    pools: dict[Holder, str] = field(default_factory=dict[Holder, str])

    def place(self, holder: Holder, event: AttemptPlaced) -> Iterator[str]:
        """Charge an attempt; name every device that somebody holds already."""
        slots = {member.node: member for member in event.members}
        if len(slots) < len(event.members):
            yield f"{holder} has a node twice"
        self.charged.setdefault(holder.key, {})[holder.attempt] = slots
        self.pools[holder] = event.pool
        for device in _devices(event):
            other = self.holders.setdefault(device, holder)
            if other != holder:
                yield f"{device} goes to {holder}, but {other} still holds it"
        devices = list(_devices(event))
        if len(set(devices)) < len(devices):
            yield f"{holder} has a device twice"

    def give_back(self, holder: Holder, event: AttemptReclaimed) -> Iterator[str]:
        """End charges; name every node that was not charged."""
        slots = self.charged.get(holder.key, {}).get(holder.attempt, {})
        for node in dict.fromkeys(event.nodes):
            slot = slots.pop(node, None)
            if slot is None:
                yield f"{node} is given back by {holder}, which does not hold it"
                continue
            for index in slot.accelerators:
                device = Device(self.pools[holder], node, index)
                if self.holders.get(device) == holder:
                    del self.holders[device]
        if not slots:
            self.charged.get(holder.key, {}).pop(holder.attempt, None)

    def nodes_of(self, key: JobKey, attempt: int = 0) -> set[str]:
        """Name the nodes charged to a job, or to one of its attempts."""
        charged = self.charged.get(key, {})
        return {
            node for n, slots in charged.items() if attempt in {0, n} for node in slots
        }

    def differences(self, job: Job) -> Iterator[str]:
        """Compare with what the job itself says is not reclaimed."""
        ours = self.charged.get(job.key, {})
        theirs = {
            attempt: {member.node: member for member in members}
            for attempt, members in job.unreclaimed.items()
        }
        if ours != theirs:
            yield f"the job says {_shown(theirs)} is charged, the log {_shown(ours)}"


def _devices(event: AttemptPlaced) -> Iterator[Device]:
    for member in event.members:
        for index in member.accelerators:
            yield Device(event.pool, member.node, index)


def _shown(charged: Mapping[int, Mapping[str, MemberSlot]]) -> str:
    parts = (
        f"attempt {attempt}: {', '.join(f'{n} {s.accelerators}' for n, s in m.items())}"
        for attempt, m in charged.items()
    )
    return "; ".join(parts) or "nothing"


# --------------------------------------------------------------------------- the rule


def check_charges(history: Replay) -> Iterator[str]:
    """Rule 5: charges equal the unreclaimed allocations; no device is given twice.

    A node is given back only with a proof of its own, a final word names the nodes that
    stay charged and no others, and an archived job holds nothing.
    """
    ledger = Ledger()
    for step in history.steps:
        if not step.counts:
            continue
        for problem in (
            *_book(ledger, step),
            *_beyond_capacity(step, history.capacity),
            *ledger.differences(step.after),
        ):
            yield f"rule 5: {step.where}: {problem}"


def charges(history: Replay) -> Mapping[Device, Holder]:
    """Who holds which device at the end of a log."""
    ledger = Ledger()
    for step in history.steps:
        if step.counts:
            tuple(_book(ledger, step))
    return ledger.holders


def _book(ledger: Ledger, step: Step) -> Iterator[str]:
    event: Transition = step.event
    match event:
        case AttemptPlaced():
            yield from ledger.place(Holder(step.key, event.attempt), event)
        case AttemptReclaimed():
            yield from ledger.give_back(Holder(step.key, event.attempt), event)
            proven = {proof.node for proof in event.proofs if proof.how}
            for node in sorted(set(event.nodes) - proven):
                yield f"{node} is given back without a proof"
        case Verdict():
            named = set(event.unreclaimed)
            owed = ledger.nodes_of(step.key, event.attempt)
            # It may also name nodes that an older attempt, fenced, still owes.
            if not owed <= named <= ledger.nodes_of(step.key):
                yield f"names {sorted(named)} as charged, not {sorted(owed)}"
        case Archived():
            for node in sorted(ledger.nodes_of(step.key)):
                yield f"archived while {node} is charged"
        case _:
            pass


def _beyond_capacity(step: Step, capacity: Mapping[NodeKey, Capacity]) -> Iterator[str]:
    event = step.event
    pools = {key.pool for key in capacity}
    if not (isinstance(event, AttemptPlaced) and event.pool in pools):
        return
    for member in event.members:
        offered = capacity.get(NodeKey(event.pool, member.node), Capacity())
        for index in member.accelerators:
            if not 0 <= index < offered.accelerators:
                yield f"{Device(event.pool, member.node, index)} was never registered"
