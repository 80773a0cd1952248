"""What the monitor remembers: jobs, nodes, ends to remark on, losses gone wrong."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from trainmaster.core.decision import Changed
from trainmaster.core.envelope import Entry
from trainmaster.core.events import AttemptEnded, AttemptLost
from trainmaster.core.ids import JobKey, NodeKey
from trainmaster.core.jobs import Jobs
from trainmaster.core.nodes import Node, node_after
from trainmaster.core.notes import FindingCleared, FindingRaised
from trainmaster.core.record import Job
from trainmaster.core.values import Cause, RankExit
from trainmaster.monitor.observed import Heard

NAN: Final = "nan"
RANK_EXIT: Final = "rank_exit"
ATTEMPT_FAILED: Final = "attempt_failed"
NODE_REPORTED: Final = "node_reported"

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """The newest finding about nodes of a job that other systems reported on."""

    finding: str
    attempt: int
    cleared: bool = False


@dataclass(slots=True)
class State:
    """Everything the monitor decides on, apart from what it observes."""

    jobs: Jobs = field(default_factory=Jobs)
    nodes: dict[NodeKey, Node] = field(default_factory=dict[NodeKey, Node])
    ends: dict[JobKey, Ends] = field(default_factory=dict[JobKey, Ends])
    nans: dict[JobKey, Raised] = field(default_factory=dict[JobKey, Raised])
    reported: dict[JobKey, Reported] = field(default_factory=dict[JobKey, Reported])
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
            yield from _cleared(state, key, cleared)
        case JobKey() as key, _:
            yield from _moved(state, key, entry)
        case _:
            pass


def _cleared(state: State, key: JobKey, cleared: FindingCleared) -> Iterable[Changed]:
    known, told = state.nans.get(key), state.reported.get(key)
    if known is not None and known.finding == cleared.finding:
        del state.nans[key]
        yield "nan", key
    if told is not None and told.finding == cleared.finding:
        state.reported[key] = replace(told, cleared=True)
        yield "reported", key


def _raised(state: State, key: JobKey, raised: FindingRaised) -> Iterable[Changed]:
    if raised.rule == NODE_REPORTED:
        if key in state.jobs:
            state.reported[key] = Reported(
                finding=raised.finding, attempt=raised.attempt
            )
            yield "reported", key
        return
    if raised.rule == NAN:
        if key in state.jobs:
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
        # An end that no finding has named yet stays until one does.
        if state.nans.pop(key, None) is not None:
            yield "nan", key
        if state.reported.pop(key, None) is not None:
            yield "reported", key
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
