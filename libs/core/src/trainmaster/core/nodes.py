"""One node, folded from its facts: what it offers, and what keeps work away. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from trainmaster.core.events import Event
from trainmaster.core.facts import (
    Capacity,
    Drained,
    DrainRequested,
    DrainWithdrawn,
    HealthReported,
    NodeLost,
    NodeQuarantined,
    NodeRegistered,
    NodeRestored,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node, as the log tells it; `reason` is why it is out of service.

    `problems` is what other systems found, by the check that found it.
    """

    capacity: Capacity = field(default_factory=Capacity)
    facts: Mapping[str, str] = field(default_factory=dict[str, str])
    boot_id: str = ""
    address: str = ""
    registered_at: datetime | None = None
    lost_at: datetime | None = None
    quarantined: bool = False
    draining: bool = False
    drained: bool = False
    reason: str = ""
    problems: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def trouble(self) -> str:
        """Say in a word why nothing is placed here; "" when it is in service."""
        words = {
            "lost": self.lost_at is not None,
            "quarantined": self.quarantined,
            "drained": self.drained,
            "draining": self.draining,
        }
        return next((word for word, holds in words.items() if holds), "")


_FLAGS: Final[Mapping[type[Event], Mapping[str, bool]]] = {
    NodeQuarantined: {"quarantined": True},
    DrainRequested: {"draining": True},
    Drained: {"drained": True},
    DrainWithdrawn: {"draining": False, "drained": False},
    NodeRestored: {"quarantined": False, "draining": False, "drained": False},
}


def node_after(node: Node, event: Event, at: datetime) -> Node:
    """Fold one fact about a node; what it does not change stays."""
    match event:
        case NodeRegistered():
            return replace(
                node,
                capacity=event.capacity,
                facts=event.facts,
                boot_id=event.boot_id,
                address=event.address,
                registered_at=at,
                lost_at=None,
            )
        case HealthReported():
            others = {c: p for c, p in node.problems.items() if c != event.check}
            found = {event.check: event.problem} if event.problem else {}
            return replace(node, problems=others | found)
        case NodeLost():
            return replace(node, lost_at=at)
        case _:
            changes: dict[str, Any] = {**_FLAGS.get(type(event), {})}
            reason = str(getattr(event, "reason", node.reason))
            return replace(node, reason=reason, **changes)
