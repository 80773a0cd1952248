"""The parts events are made of: causes, slots, exits, proofs, restore points."""

from enum import StrEnum

from pydantic import AwareDatetime

from trainmaster.core.model import Int32, Message


class Cause(StrEnum):
    """Why an attempt or a job came to its end."""

    UNSPECIFIED = ""
    COMPLETED = "completed"
    PREPARE_FAILED = "prepare_failed"
    VERSION_MISMATCH = "version_mismatch"
    START_FAILED = "start_failed"
    RANK_FAILED = "rank_failed"
    INFRASTRUCTURE = "infrastructure"
    OUT_OF_MEMORY = "out_of_memory"
    NODE_LOST = "node_lost"
    PREEMPTED = "preempted"
    TIME_LIMIT = "time_limit"
    TOTAL_LIMIT = "total_limit"
    FINDING = "finding"
    RESUME_MISMATCH = "resume_mismatch"
    DEADLINE = "deadline"
    CANCELLED = "cancelled"
    DEPENDENCY = "dependency"
    EXITED_EARLY = "exited_early"


class MemberSlot(Message):
    """What an attempt gets on one node: device indices and a range of ranks."""

    node: str = ""
    accelerators: tuple[Int32, ...] = ()
    first_rank: Int32 = 0
    ranks: Int32 = 0


class RestorePoint(Message):
    """A checkpoint proven whole: a path its nodes see, its step, its digest."""

    path: str = ""
    step: Int32 = 0
    digest: str = ""


class RankExit(Message):
    """How one process ended: exactly one of code, signal, unknown holds."""

    rank: Int32 = 0
    node: str = ""
    code: Int32 = 0
    signal: Int32 = 0
    unknown: bool = False
    out_of_memory: bool = False
    by_us: bool = False
    at: AwareDatetime | None = None
    last_lines: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        """Exit 0, seen, and not after a signal from us."""
        return not (self.code or self.signal or self.unknown or self.by_us)


class Proof(Message):
    """What was observed that shows nothing of an attempt is left on a node."""

    node: str = ""
    how: str = ""
    detail: str = ""


class Rejected(Message):
    """A checkpoint that is not used, and why."""

    path: str = ""
    step: Int32 = 0
    reason: str = ""
    moved_to: str = ""
