"""What the scheduler knows of nodes, teams and pools, folded from their facts."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from trainmaster.core.events import Event
from trainmaster.core.facts import (
    Capacity,
    Drained,
    DrainRequested,
    NodeLost,
    NodeQuarantined,
    NodeRegistered,
    NodeRestored,
)
from trainmaster.scheduler.settings import DEVICES_PER_NODE_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node: what it offers, and what keeps work away from it."""

    registered: bool = False
    accelerators: int = 0
    cpus: int = 0
    memory_bytes: int = 0
    lost: bool = False
    quarantined: bool = False
    draining: bool = False
    drained: bool = False

    @property
    def trouble(self) -> str:
        """Say in a word why nothing is placed here; "" when it is in service."""
        words = {
            "lost": self.lost,
            "quarantined": self.quarantined,
            "drained": self.drained,
            "draining": self.draining,
        }
        return next((word for word, holds in words.items() if holds), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    """Whether a team's jobs are placed."""

    paused: bool = False
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A pool that exists."""

    backend: str = ""


_FLAGS: Final[Mapping[type[Event], Mapping[str, bool]]] = {
    NodeRegistered: {"registered": True, "lost": False},
    NodeLost: {"lost": True},
    NodeQuarantined: {"quarantined": True},
    DrainRequested: {"draining": True},
    Drained: {"drained": True},
    NodeRestored: {"quarantined": False, "draining": False, "drained": False},
}


def node_after(node: Node, event: Event) -> Node:
    """Fold one fact about a node; what it does not change stays."""
    offered = _offered(event.capacity) if isinstance(event, NodeRegistered) else {}
    return replace(node, **_FLAGS.get(type(event), {}), **offered)


def _offered(capacity: Capacity) -> dict[str, Any]:
    return {
        "accelerators": min(max(capacity.accelerators, 0), DEVICES_PER_NODE_MAX),
        "cpus": max(capacity.cpus, 0),
        "memory_bytes": max(capacity.memory_bytes, 0),
    }
