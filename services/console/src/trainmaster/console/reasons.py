"""Decides why a job is where it is, and whom it waits for. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from trainmaster.console.view import JobView, ended_debts
from trainmaster.core.ids import NodeKey
from trainmaster.core.messages import Progress, WaitReason, WaitReasons
from trainmaster.core.nodes import Node
from trainmaster.core.record import LIVE, Job, JobState

WAITING: Final = frozenset({JobState.QUEUED, JobState.HELD})
_NODES_NAMED_MAX: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Now:
    """What is known beside the job itself: what was said live, and of the nodes."""

    progress: Progress | None = None
    waiting: WaitReasons | None = None
    nodes: Mapping[NodeKey, Node] = field(default_factory=dict[NodeKey, Node])


def reason(view: JobView, now: Now) -> str:
    """Say in one line why a job is where it is, "" for nothing to say."""
    job = view.job
    if view.final and job.verdict:
        return _verdict(view)
    if job.state is JobState.STOPPING:
        return "; ".join(filter(None, (_stopped_for(job), *_messages(view, now))))
    if job.state in LIVE:
        return ""
    waits = next(_messages(view, now), "")
    if job.state is JobState.SETTLING:
        return "; ".join(filter(None, (_ended_by(job), waits)))
    return waits or _ended_by(job)


def waits(view: JobView, now: Now) -> Iterator[WaitReason]:
    """Name everything a job waits for."""
    job = view.job
    if job.state is JobState.HELD:
        yield _held(job)
    if job.state in WAITING and now.waiting is not None:
        yield from now.waiting.reasons
    if job.state is JobState.STOPPING:
        yield _stop(job, now.nodes)
    if job.state is JobState.SETTLING:
        yield from _settle(job, now.nodes)


def _messages(view: JobView, now: Now) -> Iterator[str]:
    return (each.message for each in waits(view, now))


def _verdict(view: JobView) -> str:
    """Name the checkpoint that a success leaves behind."""
    told = view.job.verdict
    saved = view.job.state is JobState.SUCCEEDED and view.saved_step
    if not saved or "checkpoint" in told:
        return told
    return f"{told}, checkpoint of step {view.saved_step} verified"


def _stopped_for(job: Job) -> str:
    if job.stop is not None:
        return job.stop.reason or job.stop.cause
    return ""


def _ended_by(job: Job) -> str:
    return "" if job.ended is None else job.ended.reason or job.ended.cause


def _held(job: Job) -> WaitReason:
    called = job.spec.name or job.key.job
    return WaitReason(code="HELD", message=f"held; `tm release {called}` lets it go on")


def _stop(job: Job, nodes: Mapping[NodeKey, Node]) -> WaitReason:
    """Blame the nodes that are away; else any of them may still be at it."""
    away = [node for node in job.nodes if _trouble(job, node, nodes)]
    named = _named(job, away or job.nodes, nodes)
    return WaitReason(
        code="STOPPING",
        message=f"waits until the ranks of attempt {job.attempt} on {named} have ended",
    )


def _settle(job: Job, nodes: Mapping[NodeKey, Node]) -> Iterator[WaitReason]:
    owed = ended_debts(job).get(job.attempt, ())
    if owed:
        named = _named(job, [member.node for member in owed], nodes)
        yield WaitReason(
            code="PROOF",
            message=f"waits for proof that nothing of attempt {job.attempt} is left "
            f"on {named}",
        )
    elif job.spec.checkpoint.directory and job.chosen is None:
        yield WaitReason(
            code="CHECKPOINTS", message="waits for a last look at its checkpoints"
        )


def _named(
    job: Job, names: list[str] | tuple[str, ...], nodes: Mapping[NodeKey, Node]
) -> str:
    told = [_with_trouble(job, node, nodes) for node in names[:_NODES_NAMED_MAX]]
    more = len(names) - _NODES_NAMED_MAX
    return ", ".join([*told, f"{more} more"] if more > 0 else told)


def _with_trouble(job: Job, node: str, nodes: Mapping[NodeKey, Node]) -> str:
    trouble = _trouble(job, node, nodes)
    return f"{node} ({trouble}: start its agent again)" if trouble else node


def _trouble(job: Job, node: str, nodes: Mapping[NodeKey, Node]) -> str:
    """Say that nobody answers on a node, "" when somebody does or nobody knows."""
    known = nodes.get(NodeKey(job.pool, node))
    return "lost" if known is not None and known.lost_at is not None else ""
