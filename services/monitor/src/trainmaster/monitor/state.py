"""What the monitor remembers: jobs, nodes, ends to remark on, losses gone wrong."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from trainmaster.core.decision import Changed
from trainmaster.core.envelope import Entry
from trainmaster.core.events import AttemptEnded, AttemptLost, Event
from trainmaster.core.facts import (
    Capacity,
    Drained,
    DrainRequested,
    NodeLost,
    NodeQuarantined,
    NodeRegistered,
    NodeRestored,
)
from trainmaster.core.ids import JobKey, NodeKey
from trainmaster.core.jobs import Jobs
from trainmaster.core.notes import FindingCleared, FindingRaised
from trainmaster.core.record import Job
from trainmaster.core.values import Cause, RankExit
from trainmaster.monitor.observed import Heard

NAN: Final = "nan"
RANK_EXIT: Final = "rank_exit"
ATTEMPT_FAILED: Final = "attempt_failed"

RULE_OF_CAUSE: Final[Mapping[Cause, str]] = {
    Cause.RANK_FAILED: RANK_EXIT,
    Cause.INFRASTRUCTURE: RANK_EXIT,
    Cause.OUT_OF_MEMORY: RANK_EXIT,
    Cause.PREPARE_FAILED: ATTEMPT_FAILED,
    Cause.VERSION_MISMATCH: ATTEMPT_FAILED,
    Cause.START_FAILED: ATTEMPT_FAILED,
    Cause.NODE_LOST: ATTEMPT_FAILED,
    Cause.DEADLINE: ATTEMPT_FAILED,
    Cause.RESUME_MISMATCH: ATTEMPT_FAILED,
    Cause.EXITED_EARLY: ATTEMPT_FAILED,
}
"""Which ends are worth a finding; the others were ordered, or are a success."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node, as the log tells it."""

    capacity: Capacity = field(default_factory=Capacity)
    facts: Mapping[str, str] = field(default_factory=dict[str, str])
    boot_id: str = ""
    address: str = ""
    registered_at: datetime | None = None
    lost_at: datetime | None = None
    draining: bool = False
    drained: bool = False
    quarantined: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How one attempt ended, until a finding says so."""

    attempt: int
    rule: str
    cause: Cause
    reason: str
    node: str
    at: datetime
    first: RankExit | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """Ends of one job that no finding has named yet."""

    ends: tuple[End, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Raised:
    """A loss that was found not finite, and not yet to have passed."""

    finding: str
    attempt: int
    step: int


@dataclass(slots=True)
class State:
    """Everything the monitor decides on, apart from what it observes."""

    jobs: Jobs = field(default_factory=Jobs)
    nodes: dict[NodeKey, Node] = field(default_factory=dict[NodeKey, Node])
    ends: dict[JobKey, Ends] = field(default_factory=dict[JobKey, Ends])
    nans: dict[JobKey, Raised] = field(default_factory=dict[JobKey, Raised])
    judged: Heard | None = None
    """Heartbeats from which nothing more follows; forgotten when a node changes."""


def fold(state: State, entry: Entry) -> Iterable[Changed]:
    """Take one event in and name the rows it touched."""
    match entry.key, entry.event:
        case NodeKey() as key, event:
            before = state.nodes.get(key, Node())
            state.nodes[key] = node_after(before, event, entry.time)
            state.judged = None
            yield "node", key
        case JobKey() as key, FindingRaised() as raised:
            yield from _raised(state, key, raised)
        case JobKey() as key, FindingCleared() as cleared:
            known = state.nans.get(key)
            if known is not None and known.finding == cleared.finding:
                del state.nans[key]
                yield "nan", key
        case JobKey() as key, _:
            yield from _moved(state, key, entry)
        case _:
            pass


_FLAGS: Final[Mapping[type[Event], Mapping[str, Any]]] = {
    NodeQuarantined: {"quarantined": True},
    DrainRequested: {"draining": True},
    Drained: {"drained": True},
    NodeRestored: {"quarantined": False, "draining": False, "drained": False},
}


def node_after(node: Node, event: Event, at: datetime) -> Node:
    """Fold one fact about a node; what it does not change stays."""
    match event:
        case NodeRegistered():
            return replace(
                node,
                capacity=event.capacity,
                facts=event.facts,
                boot_id=event.boot_id,
                address=event.address,
                registered_at=at,
                lost_at=None,
            )
        case NodeLost():
            return replace(node, lost_at=at)
        case _:
            return replace(node, **_FLAGS.get(type(event), {}))


def _raised(state: State, key: JobKey, raised: FindingRaised) -> Iterable[Changed]:
    if key not in state.jobs:
        return
    if raised.rule == NAN:
        state.nans[key] = Raised(
            finding=raised.finding, attempt=raised.attempt, step=raised.step
        )
        yield "nan", key
        return
    known = state.ends.get(key, Ends()).ends
    left = tuple(
        e for e in known if (e.attempt, e.rule) != (raised.attempt, raised.rule)
    )
    if left == known:
        return
    if left:
        state.ends[key] = Ends(ends=left)
    else:
        del state.ends[key]
    yield "ends", key


def _moved(state: State, key: JobKey, entry: Entry) -> Iterable[Changed]:
    outcome = state.jobs.fold(entry)
    if not isinstance(outcome, Job):
        return
    yield "job", key
    if outcome.archived:
        yield from _forget(state, key)
    elif isinstance(entry.event, AttemptEnded | AttemptLost):
        end = _end(outcome)
        if end is not None:
            known = state.ends.get(key, Ends()).ends
            state.ends[key] = Ends(ends=(*known, end))
            yield "ends", key


def _end(job: Job) -> End | None:
    ended = job.ended
    rule = "" if ended is None else RULE_OF_CAUSE.get(ended.cause, "")
    if ended is None or not rule:
        return None
    return End(
        attempt=job.attempt,
        rule=rule,
        cause=ended.cause,
        reason=ended.reason,
        node=ended.node,
        at=ended.at,
        first=ended.first,
    )


def _forget(state: State, key: JobKey) -> Iterable[Changed]:
    if state.ends.pop(key, None) is not None:
        yield "ends", key
    if state.nans.pop(key, None) is not None:
        yield "nan", key
