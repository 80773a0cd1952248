"""Messages that are not events: assignments, telemetry, questions to a node."""

from enum import StrEnum

from pydantic import AwareDatetime, Field

from trainmaster.core.facts import Capacity
from trainmaster.core.model import Int32, Int64, Message
from trainmaster.core.spec import JobSpec, RunAs
from trainmaster.core.values import MemberSlot, Rejected, RestorePoint


class Order(StrEnum):
    """What an agent should bring about; later members of the list win."""

    UNSPECIFIED = ""
    PREPARE = "prepare"
    START = "start"
    STOP = "stop"
    CLOSE = "close"

    @property
    def rank(self) -> int:
        """Position in the order prepare < start < stop < close."""
        return list(Order).index(self)


class StartDetails(Message):
    """What a member needs to know about the others."""

    master_address: str = ""
    master_port: Int32 = 0
    addresses: tuple[str, ...] = ()
    node_rank: Int32 = 0
    restore: RestorePoint | None = None


class Assignment(Message):
    """What one node should do for one job; last value, a function of job state."""

    team: str = ""
    attempt: Int32 = 0
    order: Order = Order.UNSPECIFIED
    spec: JobSpec | None = None
    spec_digest: str = ""
    slot: MemberSlot = MemberSlot()
    start: StartDetails | None = None
    grace_seconds: float = 0.0
    stop_cause: str = ""


class NodeHeartbeat(Message):
    """An agent lives; says all the node has, so that it may be registered."""

    capacity: Capacity = Capacity()
    facts: dict[str, str] = Field(default_factory=dict)
    boot_id: str = ""
    address: str = ""
    members: Int32 = 0
    interval_seconds: float = 0.0


class OutputChunk(Message):
    """A piece of one rank's output; `offset` counts bytes in its log file."""

    offset: Int64 = 0
    text: str = ""
    node: str = ""


class MetricSample(Message):
    """What one rank reported at one step; non-finite values are the strings."""

    step: Int32 = 0
    at: AwareDatetime | None = None
    phase: str = ""
    values: dict[str, float] = Field(default_factory=dict)


class WaitReason(Message):
    """One thing that keeps a job waiting: a stable code, a sentence, its numbers."""

    code: str = ""
    message: str = ""
    numbers: dict[str, float] = Field(default_factory=dict)


class Counterfactual(Message):
    """A change with which the job would start now; planned, not guessed."""

    change: str = ""
    message: str = ""


class WaitReasons(Message):
    """All that keeps a job waiting now; `confidence` is limit, estimate or unknown."""

    reasons: tuple[WaitReason, ...] = ()
    position: Int32 = 0
    earliest_start: AwareDatetime | None = None
    confidence: str = ""
    counterfactuals: tuple[Counterfactual, ...] = ()


class Progress(Message):
    """The newest step and loss the monitor has seen of a job."""

    attempt: Int32 = 0
    step: Int32 = 0
    loss: float | None = None
    at: AwareDatetime | None = None


class ScanRequest(Message):
    """Ask a node which checkpoints below a directory are whole."""

    directory: str = ""
    user: RunAs = RunAs()
    known: dict[str, str] = Field(default_factory=dict)


class ScannedCheckpoint(Message):
    """One checkpoint as a node found it; `problem` is empty when it is whole."""

    path: str = ""
    step: Int32 = 0
    format: str = ""
    files: Int32 = 0
    bytes: Int64 = 0
    digest: str = ""
    problem: str = ""
    saved_at: AwareDatetime | None = None


class ScanReply(Message):
    """What a node found, `at` on its clock; `error` is set when it could not look."""

    checkpoints: tuple[ScannedCheckpoint, ...] = ()
    error: str = ""
    at: AwareDatetime | None = None


class AsideRequest(Message):
    """Ask a node to move torn checkpoints out of the framework's sight."""

    directory: str = ""
    paths: tuple[str, ...] = ()
    user: RunAs = RunAs()


class AsideReply(Message):
    """Where they went; nothing is deleted."""

    moved: tuple[Rejected, ...] = ()
    error: str = ""
