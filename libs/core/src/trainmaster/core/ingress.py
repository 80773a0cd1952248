"""What other systems say, what they are answered, and what nobody could read.

A source publishes on its own subjects, in any language, as CloudEvents; `KINDS` names
what it may say. None of it is an event of the log: what follows from it is.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from pydantic import AwareDatetime, Field

from trainmaster.core.model import Int32, Int64, Message


class JobRequested(Message):
    """A source wants a job: the text of a job file, and what is said beside it."""

    file: str = ""
    format: str = ""
    name: str = ""
    directory: str = ""
    overlay: str = ""


class JobCancelRequested(Message):
    """A source wants a job's end."""

    team: str = ""
    job: str = ""
    reason: str = ""


class CheckpointSaved(Message):
    """A source says that there is a new checkpoint: a reason to look, no proof."""

    team: str = ""
    job: str = ""
    path: str = ""
    step: Int32 = 0


class MetricReported(Message):
    """A source says what a rank reached; it counts like that rank's metrics file."""

    team: str = ""
    job: str = ""
    attempt: Int32 = 0
    rank: Int32 = 0
    step: Int32 = 0
    at: AwareDatetime | None = None
    phase: str = ""
    values: dict[str, float] = Field(default_factory=dict)


class NodeReported(Message):
    """A source checked a node; without a problem the check passes, again."""

    pool: str = ""
    node: str = ""
    check: str = ""
    problem: str = ""
    evidence: tuple[str, ...] = ()


class Outcome(StrEnum):
    """What became of what a source said."""

    UNSPECIFIED = ""
    ACCEPTED = "accepted"
    REFUSED = "refused"
    PARKED = "parked"


class FieldFault(Message):
    """One thing that is wrong: in which field, and where in a job file."""

    field: str = ""
    message: str = ""
    line: Int32 = 0
    column: Int32 = 0


class RequestAnswered(Message):
    """What became of one thing a source said, told to that source alone."""

    request: str = ""
    kind: str = ""
    outcome: Outcome = Outcome.UNSPECIFIED
    team: str = ""
    job: str = ""
    seq: Int64 = 0
    reason: str = ""
    faults: tuple[FieldFault, ...] = ()


class MessageParked(Message):
    """A message nobody could work off, whole, with the reason; it can be replayed."""

    stream: str = ""
    seq: Int64 = 0
    subject: str = ""
    headers: dict[str, str] = Field(default_factory=dict)
    body_base64: str = ""
    reason: str = ""


Said = (
    JobRequested | JobCancelRequested | CheckpointSaved | MetricReported | NodeReported
)

KINDS: Final[Mapping[str, type[Said]]] = {
    "job_requested": JobRequested,
    "cancel_requested": JobCancelRequested,
    "checkpoint_saved": CheckpointSaved,
    "metric_reported": MetricReported,
    "node_reported": NodeReported,
}
"""What a source may say, by the last token of the subject."""
