"""What may be said about a job: the events of its life.

A job is *submitted*. The scheduler *places* an attempt: it reserves accelerators on
nodes. The agents of those nodes prepare, the launcher *orders the start* when all are
equal, and says *started* when all ranks run. The attempt *ends* (by itself, by a stop
or a cancel) or is *lost* (nobody can report any more). Every node then proves that
nothing of the attempt is left and is *reclaimed*. If the job goes on, the
checkpoint-manager *chooses* a restore point and the reaper *requeues* it; otherwise the
reaper gives the verdict: *succeeded*, *failed* or *cancelled*, and later *archives* it.

Each event has one publisher; NATS permissions are derived from it. Nothing else changes
a job's state (`trainmaster.core.job`). Facts of nodes and members, teams and pools are
in `trainmaster.core.facts`, notes about jobs in `trainmaster.core.notes`.
"""

from typing import Any, ClassVar, Final

from pydantic import AwareDatetime
from pydantic.alias_generators import to_snake
from typing_extensions import override

from trainmaster.core.model import Int32, Message
from trainmaster.core.spec import JobSpec
from trainmaster.core.values import (
    Cause,
    MemberSlot,
    Proof,
    RankExit,
    Rejected,
    RestorePoint,
)

REGISTRY: Final[dict[tuple[str, str], type["Event"]]] = {}
"""Every event class by (family, kind), the two tokens of its subject."""


class Event(Message):
    """A fact in the past tense. `kind` is its last subject token."""

    publisher: ClassVar[str] = ""
    family: ClassVar[str] = ""
    kind: ClassVar[str] = ""

    @classmethod
    @override
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        if not cls.publisher:
            return
        if "kind" not in cls.__dict__:
            cls.kind = to_snake(cls.__name__).removeprefix(f"{cls.family}_")
        REGISTRY[cls.family, cls.kind] = cls


class Transition(Event):
    """An event that can move a job; appended with compare-and-set on the job."""

    family: ClassVar[str] = "job"


class AttemptTransition(Transition):
    """A transition of one attempt; void when that attempt is not the current one."""

    attempt: Int32 = 0


class Submitted(Transition):
    """A checked job was accepted. `key` is the caller's idempotency key."""

    publisher: ClassVar[str] = "submission"
    spec: JobSpec = JobSpec()
    spec_digest: str = ""
    by: str = ""
    key: str = ""
    origin: str = ""


class CancelRequested(Transition):
    """A user wants the job to end; no attempt starts after this."""

    publisher: ClassVar[str] = "submission"
    by: str = ""
    reason: str = ""
    origin: str = ""


class Held(Transition):
    """The job must not be placed until it is released."""

    publisher: ClassVar[str] = "submission"
    by: str = ""
    reason: str = ""
    origin: str = ""


class Released(Transition):
    """A held job may be placed again."""

    publisher: ClassVar[str] = "submission"
    by: str = ""
    origin: str = ""


class Reprioritized(Transition):
    """The job's priority changed; higher goes first."""

    publisher: ClassVar[str] = "submission"
    by: str = ""
    priority: Int32 = 0
    origin: str = ""


class AttemptPlaced(AttemptTransition):
    """The scheduler reserved accelerators for one attempt."""

    publisher: ClassVar[str] = "scheduler"
    pool: str = ""
    members: tuple[MemberSlot, ...] = ()


class PreemptRequested(AttemptTransition):
    """A more important job needs these accelerators."""

    publisher: ClassVar[str] = "scheduler"
    for_job: str = ""
    grace_seconds: float = 0.0


class StartOrdered(AttemptTransition):
    """All members are prepared and equal; agents may spawn from now on."""

    publisher: ClassVar[str] = "launcher"
    master_address: str = ""
    master_port: Int32 = 0
    addresses: tuple[str, ...] = ()
    restore: RestorePoint | None = None


class AttemptStarted(AttemptTransition):
    """Every rank of the attempt runs."""

    publisher: ClassVar[str] = "launcher"


class AttemptEnded(AttemptTransition):
    """The attempt is over; `first` is the rank that ended it, if one did."""

    publisher: ClassVar[str] = "launcher"
    cause: Cause = Cause.UNSPECIFIED
    reason: str = ""
    node: str = ""
    first: RankExit | None = None
    exits: tuple[RankExit, ...] = ()


class CheckpointChosen(AttemptTransition):
    """The restore point for the attempt after this one, or none."""

    publisher: ClassVar[str] = "checkpoint-manager"
    restore: RestorePoint | None = None
    rejected: tuple[Rejected, ...] = ()
    reason: str = ""


class StopRequested(AttemptTransition):
    """The platform ends the attempt."""

    publisher: ClassVar[str] = "reaper"
    cause: Cause = Cause.UNSPECIFIED
    reason: str = ""
    grace_seconds: float = 0.0


class AttemptLost(AttemptTransition):
    """Nobody will report this attempt's end any more."""

    publisher: ClassVar[str] = "reaper"
    cause: Cause = Cause.UNSPECIFIED
    reason: str = ""
    nodes: tuple[str, ...] = ()


class AttemptReclaimed(AttemptTransition):
    """These nodes proved that nothing is left of an ended attempt; charges end."""

    publisher: ClassVar[str] = "reaper"
    nodes: tuple[str, ...] = ()
    proofs: tuple[Proof, ...] = ()


class Requeued(AttemptTransition):
    """The job waits for another attempt.

    `charged` uses up one retry; `progressed` gives all of them back first. `fenced`
    names nodes that cannot run the old attempt although they gave no proof.
    """

    publisher: ClassVar[str] = "reaper"
    cause: Cause = Cause.UNSPECIFIED
    reason: str = ""
    charged: bool = False
    progressed: bool = False
    step: Int32 = 0
    not_before: AwareDatetime | None = None
    avoid: tuple[str, ...] = ()
    fenced: tuple[str, ...] = ()


class Verdict(AttemptTransition):
    """A final word; `unreclaimed` nodes stay charged and blocked until proof."""

    reason: str = ""
    unreclaimed: tuple[str, ...] = ()


class Succeeded(Verdict):
    """The declared evidence is there."""

    publisher: ClassVar[str] = "reaper"
    step: Int32 = 0
    evidence: tuple[str, ...] = ()


class Failed(Verdict):
    """The job cannot go on."""

    publisher: ClassVar[str] = "reaper"
    cause: Cause = Cause.UNSPECIFIED


class Cancelled(Verdict):
    """The job ended because a user or a missing dependency said so."""

    publisher: ClassVar[str] = "reaper"
    cause: Cause = Cause.UNSPECIFIED


class Archived(AttemptTransition):
    """The job's log is in the archive; it leaves all live state."""

    publisher: ClassVar[str] = "reaper"
    entries: Int32 = 0


class PlanMade(Event):
    """The marker that ends a plan; a stale scheduler's marker is refused."""

    publisher: ClassVar[str] = "scheduler"
    family: ClassVar[str] = "plan"
    kind: ClassVar[str] = ""
    placements: Int32 = 0
    preemptions: Int32 = 0
