"""What tests talk about: a spec, an event, a history, a log, a job in a given state.

`a_history("submitted placed ordered started ended reclaimed requeued")` tells a life in
words. The events are honest: they carry the attempt, the nodes, the proofs and the
exits that a service would put in. A word that does not follow still gives its event, so
that a test can tell what must be void. `word@2` speaks of attempt 2 whatever the
current one is, `reclaimed:n1,n3` only of these nodes.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count, islice
from typing import Any, Final

from trainmaster.core import subjects
from trainmaster.core.envelope import Entry
from trainmaster.core.events import (
    Archived,
    AttemptEnded,
    AttemptLost,
    AttemptPlaced,
    AttemptReclaimed,
    AttemptStarted,
    Cancelled,
    CancelRequested,
    CheckpointChosen,
    Event,
    Failed,
    Held,
    PreemptRequested,
    Released,
    Reprioritized,
    Requeued,
    StartOrdered,
    StopRequested,
    Submitted,
    Succeeded,
    Transition,
)
from trainmaster.core.ids import JobId, JobKey, Key, event_id
from trainmaster.core.job import Void, evolve
from trainmaster.core.record import LIVE, Job, JobState
from trainmaster.core.spec import JobSpec, spec_digest
from trainmaster.core.values import Cause, MemberSlot, Proof, RankExit, RestorePoint

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
KEY: Final = JobKey("default", JobId("job-1"))
LIVES: Final[Mapping[JobState, str]] = {
    JobState.NEW: "",
    JobState.QUEUED: "submitted",
    JobState.HELD: "submitted held",
    JobState.PLACED: "submitted placed",
    JobState.STARTING: "submitted placed ordered",
    JobState.RUNNING: "submitted placed ordered started",
    JobState.STOPPING: "submitted placed ordered started stop",
    JobState.SETTLING: "submitted placed ordered started ended",
    JobState.SUCCEEDED: "submitted placed ordered started completed reclaimed "
    "succeeded",
    JobState.FAILED: "submitted placed ordered started ended reclaimed failed",
    JobState.CANCELLED: "submitted cancel cancelled",
}
"""A short life that leads to each state."""


def a_spec(**changes: Any) -> JobSpec:
    """Two nodes with one accelerator and one rank each, unless told otherwise."""
    plain = JobSpec(
        name="train",
        project="tests",
        command=("python", "train.py"),
        nodes=2,
        accelerators_per_node=1,
    )
    return plain.model_copy(update=changes)


def a_submitted(spec: JobSpec | None = None) -> Submitted:
    """Accept a job."""
    chosen = a_spec() if spec is None else spec
    return Submitted(spec=chosen, spec_digest=spec_digest(chosen), by="ada")


def some_members(
    nodes: Iterable[str], spec: JobSpec, *, device: int = 0
) -> tuple[MemberSlot, ...]:
    """Give each node its ranks and its devices, counted from `device`."""
    devices = tuple(range(device, device + spec.accelerators_per_node))
    return tuple(
        MemberSlot(
            node=node,
            accelerators=devices,
            first_rank=index * spec.ranks_per_node,
            ranks=spec.ranks_per_node,
        )
        for index, node in enumerate(nodes)
    )


def a_placed(
    attempt: int = 1,
    nodes: Sequence[str] = ("n1", "n2"),
    *,
    device: int = 0,
    spec: JobSpec | None = None,
) -> AttemptPlaced:
    """Reserve devices on nodes, as many as the spec wants per node."""
    chosen = a_spec() if spec is None else spec
    members = some_members(nodes, chosen, device=device)
    return AttemptPlaced(attempt=attempt, pool=chosen.pool, members=members)


def some_exits(
    members: Iterable[MemberSlot], *, code: int = 0, **changes: Any
) -> tuple[RankExit, ...]:
    """Let every rank of these members exit alike."""
    return tuple(
        RankExit(rank=member.first_rank + index, node=member.node, code=code, **changes)
        for member in members
        for index in range(member.ranks)
    )


def a_reclaimed(attempt: int, nodes: Sequence[str]) -> AttemptReclaimed:
    """Give nodes back, each with a proof."""
    proofs = tuple(Proof(node=node, how="closed") for node in nodes)
    return AttemptReclaimed(attempt=attempt, nodes=tuple(nodes), proofs=proofs)


# ------------------------------------------------------------------------ histories


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What a word of a history is said about."""

    job: Job
    spec: JobSpec
    attempt: int
    nodes: tuple[str, ...] = ()
    prefix: str = "n"

    @property
    def owed(self) -> tuple[str, ...]:
        """The nodes that are spoken of, or else all that owe a proof."""
        members = self.job.unreclaimed.get(self.attempt, ())
        return self.nodes or tuple(member.node for member in members)

    def free_nodes(self) -> Iterator[str]:
        """Name nodes that hold nothing of this job, the first ones first."""
        charged = {m.node for ms in self.job.unreclaimed.values() for m in ms}
        names = (f"{self.prefix}{number}" for number in count(1))
        return (name for name in names if name not in charged)


def _placed(scene: Scene) -> AttemptPlaced:
    nodes = scene.nodes or tuple(islice(scene.free_nodes(), scene.spec.nodes))
    return a_placed(scene.attempt, nodes, spec=scene.spec)


def _ended(scene: Scene) -> AttemptEnded:
    exits = some_exits(scene.job.members, code=1)
    return AttemptEnded(
        attempt=scene.attempt,
        cause=Cause.RANK_FAILED,
        reason="rank 0 exited with 1",
        node=exits[0].node if exits else "",
        first=exits[0] if exits else None,
        exits=exits,
    )


def _completed(scene: Scene) -> AttemptEnded:
    exits = some_exits(scene.job.members)
    return AttemptEnded(attempt=scene.attempt, cause=Cause.COMPLETED, exits=exits)


def _requeued(scene: Scene) -> Requeued:
    return Requeued(attempt=scene.attempt, cause=Cause.RANK_FAILED, charged=True)


def _verdict(kind: type[Succeeded] | type[Failed] | type[Cancelled]) -> "_Word":
    def say(scene: Scene) -> Transition:
        members = scene.job.unreclaimed.values()
        charged = tuple(dict.fromkeys(m.node for slots in members for m in slots))
        word = kind(attempt=scene.attempt, unreclaimed=charged, reason="done")
        proven = {"step": scene.spec.success.step, "evidence": ("exits",)}
        return word.model_copy(update=proven if kind is Succeeded else {})

    return say


_Word = Callable[[Scene], Transition]
WORDS: Final[Mapping[str, _Word]] = {
    "submitted": lambda scene: a_submitted(scene.spec),
    "held": lambda _: Held(by="ada"),
    "released": lambda _: Released(by="ada"),
    "reprioritized": lambda _: Reprioritized(by="ada", priority=7),
    "cancel": lambda _: CancelRequested(by="ada", reason="no longer needed"),
    "placed": _placed,
    "ordered": lambda scene: StartOrdered(attempt=scene.attempt),
    "started": lambda scene: AttemptStarted(attempt=scene.attempt),
    "ended": _ended,
    "completed": _completed,
    "lost": lambda scene: AttemptLost(
        attempt=scene.attempt, cause=Cause.NODE_LOST, nodes=scene.owed[:1]
    ),
    "stop": lambda scene: StopRequested(attempt=scene.attempt, cause=Cause.FINDING),
    "preempt": lambda scene: PreemptRequested(attempt=scene.attempt, for_job="job-9"),
    "reclaimed": lambda scene: a_reclaimed(scene.attempt, scene.owed),
    "chosen": lambda scene: CheckpointChosen(
        attempt=scene.attempt, restore=RestorePoint(path="step-10", step=10)
    ),
    "requeued": _requeued,
    "fenced": lambda scene: _requeued(scene).model_copy(update={"fenced": scene.owed}),
    "succeeded": _verdict(Succeeded),
    "failed": _verdict(Failed),
    "cancelled": _verdict(Cancelled),
    "archived": lambda scene: Archived(attempt=scene.attempt),
}
"""Every word of a history; `cancel` asks, `cancelled` is the verdict."""


def said(job: Job, word: str, *, spec: JobSpec, prefix: str = "n") -> Transition:
    """Build the event of one word about a job that is in this state."""
    head, _, nodes = word.partition(":")
    name, _, attempt = head.partition("@")
    scene = Scene(
        job=job,
        spec=spec,
        attempt=int(attempt) if attempt else _attempt_of(job, name),
        nodes=tuple(nodes.split(",")) if nodes else (),
        prefix=prefix,
    )
    return WORDS[name](scene)


def _attempt_of(job: Job, name: str) -> int:
    """Choose the attempt that a word means when it names none."""
    if name == "placed":
        return job.attempt + 1
    over = [n for n in job.unreclaimed if n < job.attempt or job.state not in LIVE]
    if name == "reclaimed" and over:
        return max(over)
    return job.attempt


def a_history(
    words: str, *, spec: JobSpec | None = None, prefix: str = "n"
) -> list[Transition]:
    """Tell a life; nodes are called `prefix` and a number."""
    chosen = a_spec() if spec is None else spec
    job, events = Job(key=KEY), list[Transition]()
    for word in words.split():
        event = said(job, word, spec=chosen, prefix=prefix)
        outcome = evolve(job, event, START)
        job = job if isinstance(outcome, Void) else outcome
        events.append(event)
    return events


def a_job(state: JobState, *, spec: JobSpec | None = None) -> Job:
    """Lead a job into a state on a short way."""
    return told(a_history(LIVES[state], spec=spec))


def told(events: Iterable[Transition], *, job: Job | None = None) -> Job:
    """Fold events, one a second; what does not follow is ignored, as everywhere."""
    state = Job(key=KEY) if job is None else job
    for number, event in enumerate(events):
        outcome = evolve(state, event, START + timedelta(seconds=number))
        state = state if isinstance(outcome, Void) else outcome
    return state


# ----------------------------------------------------------------------------- logs


def an_entry(event: Event, *, key: Key = KEY, seq: int = 1) -> Entry:
    """Store one event; the server's time is `seq` seconds after START."""
    scope = subjects.scope(event.family, key) or subjects.event_subject(key, event)
    kind = event.kind or event.family
    return Entry(
        stream=subjects.STREAM_OF_FAMILY[event.family],
        seq=seq,
        time=START + timedelta(seconds=seq),
        id=event_id(epoch=1, scope=scope, head=str(seq), kind=kind, cause=""),
        family=event.family,
        key=key,
        event=event,
    )


def a_log(events: Iterable[Event], *, key: Key = KEY, first: int = 1) -> list[Entry]:
    """Store events about one key in a row, from sequence `first`."""
    return [
        an_entry(event, key=key, seq=seq) for seq, event in enumerate(events, first)
    ]
