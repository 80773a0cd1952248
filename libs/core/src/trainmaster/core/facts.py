"""What may be said about nodes, members, teams and pools.

Members' facts come from the agents without compare-and-set. Only `NodeRegistered` says
what capacity there is.
"""

from typing import ClassVar

from pydantic import AwareDatetime, Field

from trainmaster.core.events import Event
from trainmaster.core.model import Int32, Int64, Message
from trainmaster.core.values import Proof, RankExit


class Capacity(Message):
    """What a node can give away."""

    accelerators: Int32 = 0
    cpus: Int32 = 0
    memory_bytes: Int64 = 0


class CheckFailure(Message):
    """A check that failed: which, on which field, what was seen."""

    check: str = ""
    field: str = ""
    expected: str = ""
    seen: str = ""
    evidence: str = ""


class NodeFact(Event):
    """A fact about one node; the monitor alone says it."""

    family: ClassVar[str] = "node"


class NodeRegistered(NodeFact):
    """A node offers capacity."""

    publisher: ClassVar[str] = "monitor"
    capacity: Capacity = Capacity()
    facts: dict[str, str] = Field(default_factory=dict)
    boot_id: str = ""
    address: str = ""


class DrainRequested(NodeFact):
    """An operator wants the node empty."""

    publisher: ClassVar[str] = "submission"
    by: str = ""
    reason: str = ""


class Drained(NodeFact):
    """Nothing runs on the node any more and nothing is placed there."""

    publisher: ClassVar[str] = "monitor"


class NodeLost(NodeFact):
    """The node's agent is silent; what runs there is unknown, not gone."""

    publisher: ClassVar[str] = "monitor"
    silent_seconds: float = 0.0
    boot_id: str = ""


class NodeQuarantined(NodeFact):
    """The node is not trusted with new work."""

    publisher: ClassVar[str] = "monitor"
    reason: str = ""


class NodeRestored(NodeFact):
    """The node is usable again."""

    publisher: ClassVar[str] = "monitor"
    reason: str = ""


class MemberFact(Event):
    """A fact about an attempt's part on one node; its agent says it."""

    family: ClassVar[str] = "member"


class MemberPrepared(MemberFact):
    """The node staged and checked; `versions` must be equal on all members."""

    publisher: ClassVar[str] = "agent"
    failure: CheckFailure | None = None
    address: str = ""
    port: Int32 = 0
    versions: dict[str, str] = Field(default_factory=dict)


class MemberStarted(MemberFact):
    """The node's ranks run, or one could not be started."""

    publisher: ClassVar[str] = "agent"
    failure: CheckFailure | None = None
    pids: tuple[Int32, ...] = ()


class MemberStopped(MemberFact):
    """The stop ladder is through on this node."""

    publisher: ClassVar[str] = "agent"
    killed: bool = False


class MemberClosed(MemberFact):
    """Nothing of the attempt is left on this node, and nothing can start there."""

    publisher: ClassVar[str] = "agent"
    proof: Proof = Proof()


class RankExited(MemberFact):
    """One rank's process ended."""

    publisher: ClassVar[str] = "agent"
    kind: ClassVar[str] = "rank_exited"
    exit: RankExit = RankExit()


class TeamFact(Event):
    """A fact about one team."""

    family: ClassVar[str] = "team"


class TeamCreated(TeamFact):
    """A team exists; `parent` is empty for a top-level one."""

    publisher: ClassVar[str] = "submission"
    kind: ClassVar[str] = "team_created"
    by: str = ""
    parent: str = ""


class QuotaSet(TeamFact):
    """How many accelerators a team may hold in a pool; negative is no limit."""

    publisher: ClassVar[str] = "submission"
    by: str = ""
    pool: str = ""
    accelerators: Int32 = -1
    borrowing: Int32 = 0


class TeamPaused(TeamFact):
    """The team's jobs are not placed while `paused`; running ones go on."""

    publisher: ClassVar[str] = "submission"
    kind: ClassVar[str] = "team_paused"
    by: str = ""
    paused: bool = False
    until: AwareDatetime | None = None


class PoolFact(Event):
    """A fact about one pool."""

    family: ClassVar[str] = "pool"


class PoolCreated(PoolFact):
    """A pool exists; agents lease ports from its range."""

    publisher: ClassVar[str] = "submission"
    kind: ClassVar[str] = "pool_created"
    by: str = ""
    backend: str = "process"
    port_first: Int32 = 0
    port_last: Int32 = 0


class PoolChanged(PoolFact):
    """A pool's settings changed; the whole new value."""

    publisher: ClassVar[str] = "submission"
    kind: ClassVar[str] = "pool_changed"
    by: str = ""
    backend: str = "process"
    port_first: Int32 = 0
    port_last: Int32 = 0
