"""What may be remarked about a job without moving it: notes, idempotent by id."""

from typing import ClassVar

from pydantic import Field

from trainmaster.core.events import Event
from trainmaster.core.model import Int32, Int64


class Note(Event):
    """A remark on one attempt; appended without compare-and-set."""

    family: ClassVar[str] = "note"
    attempt: Int32 = 0


class FindingRaised(Note):
    """The monitor believes something is wrong, with evidence."""

    publisher: ClassVar[str] = "monitor"
    finding: str = ""
    rule: str = ""
    summary: str = ""
    evidence: tuple[str, ...] = ()
    step: Int32 = 0


class FindingCleared(Note):
    """What was wrong is right again."""

    publisher: ClassVar[str] = "monitor"
    finding: str = ""
    rule: str = ""


class CheckpointVerified(Note):
    """A checkpoint is whole: every file is there with its size and its content.

    Attempt 0 means that it was saved before the job's first attempt.
    """

    publisher: ClassVar[str] = "checkpoint-manager"
    path: str = ""
    step: Int32 = 0
    format: str = ""
    files: Int32 = 0
    bytes: Int64 = 0
    digest: str = ""


class CheckpointRejected(Note):
    """A checkpoint is torn or unusable; nothing was deleted."""

    publisher: ClassVar[str] = "checkpoint-manager"
    path: str = ""
    step: Int32 = 0
    reason: str = ""
    moved_to: str = ""


class CheckpointsScanned(Note):
    """The last look at an attempt's checkpoints is done: all that is whole was noted.

    It comes once all nodes of the attempt gave proof, so that nobody writes any more.
    """

    publisher: ClassVar[str] = "checkpoint-manager"
    whole: Int32 = 0
    step: Int32 = 0


class CheckpointRetired(Note):
    """Retention removed a checkpoint from the catalogue."""

    publisher: ClassVar[str] = "checkpoint-manager"
    path: str = ""
    step: Int32 = 0
    reason: str = ""


class AttemptBound(Note):
    """A delegated pool gave these nodes to the attempt."""

    publisher: ClassVar[str] = "launcher"
    nodes: tuple[str, ...] = ()
    native_id: str = ""


class StagePassed(Note):
    """One rung of a rollout ladder passed."""

    publisher: ClassVar[str] = "launcher"
    stage: str = ""
    evidence: tuple[str, ...] = ()


class LedgerClosed(Note):
    """Where an attempt's accelerator-seconds went, by phase."""

    publisher: ClassVar[str] = "reaper"
    accelerators: Int32 = 0
    accelerator_seconds: dict[str, float] = Field(default_factory=dict)
