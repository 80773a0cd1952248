"""What a caller may ask of a job, and what the policy may answer. Pure values."""

from dataclasses import dataclass

from trainmaster.core.errors import Fault
from trainmaster.core.ids import JobKey
from trainmaster.core.spec import JobSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Something asked of one job by somebody."""

    key: JobKey
    by: str = ""


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
    """No live job has this id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Impossible:
    """The job is not in a state that allows it."""

    message: str


Reply = Stored | Already | Unfit | Missing | Impossible
