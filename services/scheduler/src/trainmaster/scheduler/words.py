"""How reasons are worded: codes that stay, numbers, lists that are cut. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from trainmaster.core.messages import WaitReason
from trainmaster.scheduler.labels import Look
from trainmaster.scheduler.snapshot import Want

NO_NODES: Final = "NO_NODES"
NEVER_FITS: Final = "NEVER_FITS"
NODE_STATE: Final = "NODE_STATE"
NODE_FACTS: Final = "NODE_FACTS"
TOPOLOGY: Final = "TOPOLOGY"
PROOF: Final = "PROOF"
CAPACITY: Final = "CAPACITY"
FRAGMENTED: Final = "FRAGMENTED"
RESERVED: Final = "RESERVED"
WINDOW: Final = "WINDOW"
PRIORITY: Final = "PRIORITY"
QUOTA_TEAM: Final = "QUOTA_TEAM"
BUDGET: Final = "BUDGET"
BACKOFF: Final = "BACKOFF"
PAUSED: Final = "PAUSED"
RESTORE_POINT: Final = "RESTORE_POINT"
DEPENDENCY: Final = "DEPENDENCY"
NEXT_PLAN: Final = "NEXT_PLAN"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One blocker: as it is now, and in words that do not change by the minute."""

    code: str
    now: str
    always: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def moving(self) -> WaitReason:
        """Tell it with the numbers of this moment."""
        return WaitReason(code=self.code, message=self.now, numbers={**self.numbers})

    @property
    def steady(self) -> tuple[str, str]:
        """Tell it without them: code and sentence."""
        return self.code, self.always or self.now


def need(want: Want) -> str:
    """Say what a gang needs."""
    nodes = f"{want.nodes} node{'s' if want.nodes > 1 else ''} with "
    parts = [f"{want.accelerators} accelerators"] if want.accelerators else []
    parts += [f"{want.cpus} cpus"] if want.cpus and not want.accelerators else []
    parts += [f"{want.memory_bytes} bytes of memory"] if want.memory_bytes else []
    return nodes + (", ".join(parts) or "nothing")


def offer(look: Look) -> str:
    """Say what a node has."""
    return (
        f"{look.accelerators} accelerators, {look.cpus} cpus, "
        f"{look.memory_bytes} bytes of memory"
    )


def listed(named: Sequence[str], count: int) -> str:
    """Name some and count the rest."""
    more = count - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "")


def time(at: datetime) -> str:
    """Say when."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"
