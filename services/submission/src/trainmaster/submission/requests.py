"""What a caller may ask of a job or a node, and what may be answered. Pure values."""

from dataclasses import dataclass
from typing import Final

from trainmaster.core.errors import Fault
from trainmaster.core.ids import JobKey, Key, NodeKey
from trainmaster.core.spec import JobSpec
from trainmaster.submission.settings import LOG_SHARE_MAX

ROOM_FACT: Final = "room"
"""The fact `Room`: how full the log is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Something asked of one job by somebody."""

    key: JobKey
    by: str = ""
    origin: str = ""

    @property
    def moves(self) -> Key:
        """What changes with it: no other request that changes it is judged then."""
        return self.key


@dataclass(frozen=True, slots=True, kw_only=True)
class Submit(Request):
    """Take this job, under the id that was chosen for it; `dry` only asks whether."""

    spec: JobSpec
    idempotency_key: str = ""
    dry: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel(Request):
    """End the job."""

    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold(Request):
    """Keep the job from being placed."""

    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release(Request):
    """Let the job be placed again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reprioritize(Request):
    """Move the job in the queue."""

    priority: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRequest:
    """Something asked of one node by somebody."""

    key: NodeKey
    by: str = ""
    origin: str = ""
    reason: str = ""

    @property
    def moves(self) -> Key:
        """What changes with it."""
        return self.key


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain(NodeRequest):
    """Give the node nothing new; what runs there may end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Undrain(NodeRequest):
    """Use the node again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportHealth(NodeRequest):
    """Note what a check of another system found; "" when it passes."""

    check: str
    problem: str = ""
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """How much of the log is used; no bound is 0."""

    used_bytes: int = 0
    most_bytes: int = 0

    @property
    def full(self) -> bool:
        """Whether what is left is needed for the jobs there are."""
        return 0 < self.most_bytes * LOG_SHARE_MAX <= self.used_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """It is on the log, there."""

    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Already:
    """It is so already; nothing had to be stored."""

    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfit:
    """The job cannot be taken; each fault names its field."""

    faults: tuple[Fault, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """No live job has this id, or no node this name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Impossible:
    """The job is not in a state that allows it."""

    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Full:
    """The log has no room for new jobs."""

    room: Room


Reply = Stored | Already | Unfit | Missing | Impossible | Full
