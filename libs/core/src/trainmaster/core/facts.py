"""What may be said about nodes, members, teams and pools.

Members' facts come from the agents without compare-and-set. Only `NodeRegistered` says
what capacity there is.
"""

from typing import ClassVar, Final

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
    origin: str = ""


class DrainWithdrawn(NodeFact):
    """An operator wants the node in service again."""

    publisher: ClassVar[str] = "submission"
    by: str = ""
    reason: str = ""
    origin: str = ""


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


class HealthReported(NodeFact):
    """Another system checked the node; without a problem that check passes again."""

    publisher: ClassVar[str] = "submission"
    check: str = ""
    problem: str = ""
    evidence: tuple[str, ...] = ()
    by: str = ""
    origin: str = ""


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
    origin: str = ""


class QuotaSet(TeamFact):
    """How many accelerators a team may hold in a pool; negative is no limit."""

    publisher: ClassVar[str] = "submission"
    by: str = ""
    pool: str = ""
    accelerators: Int32 = -1
    borrowing: Int32 = 0
    origin: str = ""
    reclaim: str = ""
    weight: float = 1.0
    accelerators_per_job_max: Int32 = -1
    accelerators_per_user_max: Int32 = -1


class TeamPaused(TeamFact):
    """The team's jobs are not placed while `paused`; running ones go on."""

    publisher: ClassVar[str] = "submission"
    kind: ClassVar[str] = "team_paused"
    by: str = ""
    paused: bool = False
    until: AwareDatetime | None = None
    origin: str = ""


class BudgetSet(TeamFact):
    """How much money a team may spend in all; `policy` says what then."""

    publisher: ClassVar[str] = "submission"
    by: str = ""
    amount: float = -1.0
    currency: str = ""
    policy: str = ""
    origin: str = ""


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
    origin: str = ""


class PoolChanged(PoolFact):
    """A pool's settings changed; the whole new value."""

    publisher: ClassVar[str] = "submission"
    kind: ClassVar[str] = "pool_changed"
    by: str = ""
    backend: str = "process"
    port_first: Int32 = 0
    port_last: Int32 = 0
    origin: str = ""


class PoolTuned(PoolFact):
    """How a pool is planned: spare nodes and price; the whole new value."""

    publisher: ClassVar[str] = "submission"
    kind: ClassVar[str] = "pool_tuned"
    by: str = ""
    spare_nodes: Int32 = 0
    accelerator_hour_price: float = 0.0
    origin: str = ""


class MaintenanceSet(PoolFact):
    """No job may run on these nodes (none: all of the pool) from start to end."""

    publisher: ClassVar[str] = "submission"
    by: str = ""
    name: str = ""
    nodes: tuple[str, ...] = ()
    starts_at: AwareDatetime | None = None
    ends_at: AwareDatetime | None = None
    reason: str = ""
    withdrawn: bool = False
    origin: str = ""


class ReservationSet(PoolFact):
    """These nodes are kept for a team, or for jobs of at least this priority."""

    publisher: ClassVar[str] = "submission"
    by: str = ""
    name: str = ""
    nodes: tuple[str, ...] = ()
    team: str = ""
    priority: Int32 = 0
    starts_at: AwareDatetime | None = None
    ends_at: AwareDatetime | None = None
    withdrawn: bool = False
    origin: str = ""


class PriorityClassSet(PoolFact):
    """What jobs from this priority up may do to others, and others to them."""

    publisher: ClassVar[str] = "submission"
    by: str = ""
    name: str = ""
    priority: Int32 = 0
    preempts: bool = False
    protected: bool = False
    withdrawn: bool = False
    origin: str = ""


PLANNING: Final = (
    BudgetSet,
    PoolTuned,
    MaintenanceSet,
    ReservationSet,
    PriorityClassSet,
)
"""What is said to steer the scheduler, quota aside."""
