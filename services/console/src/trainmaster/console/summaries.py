"""Says every event in one plain sentence: one literal table, total and pure."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from trainmaster.console.summaries_access import ACCESS
from trainmaster.console.summaries_access import by as _by
from trainmaster.console.summaries_access import why as _why
from trainmaster.core import events as e
from trainmaster.core import facts as f
from trainmaster.core import notes as n
from trainmaster.core.events import Event
from trainmaster.core.ids import Key, MemberKey
from trainmaster.core.values import MemberSlot, Proof, RankExit, RestorePoint

_NODES_NAMED_MAX: Final = 8
_UNITS: Final = (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3))

_Say = Callable[[Any, Any], str]


def summary(event: Event, key: Key) -> str:
    """Say what happened."""
    return SENTENCES[type(event)](event, key)


# ------------------------------------------------------------------------------ words


def counted(count: int, word: str) -> str:
    """Write a number of things."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def size(count: int) -> str:
    """Write a number of bytes."""
    for unit, one in _UNITS:
        if count >= one:
            return f"{count / one:.1f} {unit}"
    return counted(count, "byte")


def exited(exit_: RankExit) -> str:
    """Say how a rank ended."""
    who = f"rank {exit_.rank} on {exit_.node}" if exit_.node else f"rank {exit_.rank}"
    if exit_.out_of_memory:
        return f"{who} ran out of memory"
    if exit_.unknown:
        return f"{who} ended, nobody knows how"
    by = " by us" if exit_.by_us else ""
    if exit_.signal:
        return f"{who} was killed{by} by signal {exit_.signal}"
    stopped = " after we stopped it" if exit_.by_us else ""
    return f"{who} exited with {exit_.code}{stopped}"


def _nodes(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:_NODES_NAMED_MAX])
    more = len(names) - _NODES_NAMED_MAX
    return f"{shown} and {counted(more, 'more node')}" if more > 0 else shown


def _slot(slot: MemberSlot) -> str:
    if not slot.accelerators:
        return slot.node
    return f"{slot.node} ({counted(len(slot.accelerators), 'accelerator')})"


def _restored(restore: RestorePoint | None) -> str:
    return "" if restore is None else f" from step {restore.step}"


def _seconds(seconds: float) -> str:
    return f"{seconds:g} s"


# ------------------------------------------------------------------------------- jobs


def _submitted(event: e.Submitted, _key: Key) -> str:
    spec = event.spec
    each = f" with {counted(spec.accelerators_per_node, 'accelerator')} each"
    asks = counted(spec.nodes, "node") + (each if spec.accelerators_per_node else "")
    return f"{spec.name or 'the job'} submitted{_by(event)}: {asks}"


def _placed(event: e.AttemptPlaced, _key: Key) -> str:
    where = _nodes(tuple(map(_slot, event.members)))
    return f"attempt {event.attempt} placed on {where}"


def _ended(event: e.AttemptEnded, _key: Key) -> str:
    if event.first is not None:
        return f"attempt {event.attempt} ended: {exited(event.first)}"
    return f"attempt {event.attempt} ended{_why(event.reason or event.cause)}"


def _lost(event: e.AttemptLost, _key: Key) -> str:
    return f"attempt {event.attempt} given up{_why(event.reason or event.cause)}"


def _proof(proof: Proof) -> str:
    return proof.how + (f" ({proof.detail})" if proof.detail else "")


def _reclaimed(event: e.AttemptReclaimed, _key: Key) -> str:
    how = tuple(dict.fromkeys(map(_proof, event.proofs)))
    return f"{_nodes(event.nodes)} given back{_why(', '.join(how))}"


def _chosen(event: e.CheckpointChosen, _key: Key) -> str:
    if event.reason:
        return event.reason
    if event.restore is None:
        return "the next attempt starts from the beginning"
    return f"the next attempt resumes{_restored(event.restore)}"


def _requeued(event: e.Requeued, _key: Key) -> str:
    until = f", not before {event.not_before:%H:%M:%S}" if event.not_before else ""
    return f"queued again{_why(event.reason or event.cause)}{until}"


def _succeeded(event: e.Succeeded, _key: Key) -> str:
    return f"succeeded{_why(event.reason or ', '.join(event.evidence))}{_owed(event)}"


def _owed(event: e.Verdict) -> str:
    if not event.unreclaimed:
        return ""
    return f"; {_nodes(event.unreclaimed)} stay charged until proof"


# ------------------------------------------------------------------------------ notes


def _verified(event: n.CheckpointVerified, _key: Key) -> str:
    held = f"{counted(event.files, 'file')}, {size(event.bytes)}"
    return f"checkpoint of step {event.step} verified ({held})"


def _rejected(event: n.CheckpointRejected, _key: Key) -> str:
    moved = f"; moved to {event.moved_to}" if event.moved_to else ""
    return f"checkpoint of step {event.step} not used{_why(event.reason)}{moved}"


def _ledger(event: n.LedgerClosed, _key: Key) -> str:
    spent = event.accelerator_seconds.items()
    told = ", ".join(f"{phase} {_seconds(seconds)}" for phase, seconds in spent)
    return f"accelerator-seconds of attempt {event.attempt}{_why(told)}"


# ---------------------------------------------------------------------- nodes, members


def _registered(event: f.NodeRegistered, key: Any) -> str:
    has = event.capacity
    offers = f"{counted(has.accelerators, 'accelerator')}, {counted(has.cpus, 'core')}"
    return f"{key.node} offers {offers}"


def _failed(failure: f.CheckFailure | None) -> str:
    if failure is None:
        return ""
    told = [f"expected {failure.expected}"] if failure.expected else []
    told += [f"found {failure.seen}"] if failure.seen else []
    seen = f": {', '.join(told)}" if told else ""
    evidence = f" ({failure.evidence})" if failure.evidence else ""
    return f"{' '.join(filter(None, (failure.check, failure.field)))}{seen}{evidence}"


def _prepared(event: f.MemberPrepared, key: MemberKey) -> str:
    if event.failure is None:
        return f"{key.node} is prepared for attempt {key.attempt}"
    return f"{key.node} could not prepare: {_failed(event.failure)}"


def _started(event: f.MemberStarted, key: MemberKey) -> str:
    if event.failure is None:
        return f"{counted(len(event.pids), 'rank')} started on {key.node}"
    return f"{key.node} could not start: {_failed(event.failure)}"


def _stopped(event: f.MemberStopped, key: MemberKey) -> str:
    how = "killed" if event.killed else "stopped"
    return f"ranks on {key.node} {how}"


def _closed(event: f.MemberClosed, key: MemberKey) -> str:
    return f"{key.node} closed attempt {key.attempt}{_why(_proof(event.proof))}"


def _quota(event: f.QuotaSet, key: Any) -> str:
    most = "any number of" if event.accelerators < 0 else f"{event.accelerators:,}"
    may = f"team {key.team} may hold {most} accelerators in {event.pool}"
    return f"{may}{_set_by(event)}"


def _paused(event: f.TeamPaused, key: Any) -> str:
    return f"team {key.team} {'paused' if event.paused else 'goes on'}{_by(event)}"


def _set_by(event: f.QuotaSet) -> str:
    by = _by(event)
    return f", set{by}" if by else ""


SENTENCES: Final[Mapping[type[Event], _Say]] = {
    **ACCESS,
    e.Submitted: _submitted,
    e.CancelRequested: lambda v, _: f"cancel requested{_by(v)}{_why(v.reason)}",
    e.Held: lambda v, _: f"held{_by(v)}{_why(v.reason)}",
    e.Released: lambda v, _: f"released{_by(v)}",
    e.Reprioritized: lambda v, _: f"priority set to {v.priority}{_by(v)}",
    e.AttemptPlaced: _placed,
    e.PreemptRequested: lambda v, _: (
        f"attempt {v.attempt} makes room for job {v.for_job}"
    ),
    e.StartOrdered: lambda v, _: (
        f"attempt {v.attempt} told to start{_restored(v.restore)}"
    ),
    e.AttemptStarted: lambda v, _: f"attempt {v.attempt} runs on all ranks",
    e.AttemptEnded: _ended,
    e.CheckpointChosen: _chosen,
    e.StopRequested: lambda v, _: (
        f"attempt {v.attempt} told to stop{_why(v.reason or v.cause)}"
    ),
    e.AttemptLost: _lost,
    e.AttemptReclaimed: _reclaimed,
    e.Requeued: _requeued,
    e.Succeeded: _succeeded,
    e.Failed: lambda v, _: f"failed{_why(v.reason or v.cause)}{_owed(v)}",
    e.Cancelled: lambda v, _: f"cancelled{_why(v.reason or v.cause)}{_owed(v)}",
    e.Archived: lambda _, __: "archived",
    e.PlanMade: lambda v, k: (
        f"plan of pool {k.pool}: {counted(v.placements, 'placement')}"
    ),
    n.FindingRaised: lambda v, _: f"{v.rule or 'finding'}: {v.summary}",
    n.FindingCleared: lambda v, _: f"{v.rule or 'finding'} is over",
    n.CheckpointVerified: _verified,
    n.CheckpointRejected: _rejected,
    n.CheckpointsScanned: lambda v, _: (
        f"{counted(v.whole, 'whole checkpoint')} after attempt {v.attempt}"
    ),
    n.CheckpointRetired: lambda v, _: (
        f"checkpoint of step {v.step} retired{_why(v.reason)}"
    ),
    n.AttemptBound: lambda v, _: f"attempt {v.attempt} got {_nodes(v.nodes)}",
    n.StagePassed: lambda v, _: f"stage {v.stage} passed",
    n.LedgerClosed: _ledger,
    f.NodeRegistered: _registered,
    f.DrainRequested: lambda v, k: f"{k.node} is to be drained{_by(v)}{_why(v.reason)}",
    f.DrainWithdrawn: lambda v, k: (
        f"{k.node} is not to be drained any more{_by(v)}{_why(v.reason)}"
    ),
    f.Drained: lambda _, k: f"{k.node} is drained",
    f.NodeLost: lambda v, k: f"{k.node} is silent for {_seconds(v.silent_seconds)}",
    f.NodeQuarantined: lambda v, k: f"{k.node} quarantined{_why(v.reason)}",
    f.HealthReported: lambda v, k: (
        f"{v.check} on {k.node}: {v.problem or 'passes again'}{_by(v)}"
    ),
    f.NodeRestored: lambda v, k: f"{k.node} is in service again{_why(v.reason)}",
    f.MemberPrepared: _prepared,
    f.MemberStarted: _started,
    f.MemberStopped: _stopped,
    f.MemberClosed: _closed,
    f.RankExited: lambda v, _: exited(v.exit),
    f.TeamCreated: lambda v, k: f"team {k.team} created{_by(v)}",
    f.QuotaSet: _quota,
    f.TeamPaused: _paused,
    f.PoolCreated: lambda v, k: f"pool {k.pool} created{_by(v)} ({v.backend})",
    f.PoolChanged: lambda v, k: f"pool {k.pool} changed{_by(v)} ({v.backend})",
    **dict.fromkeys(f.PLANNING, lambda v, k: f"{v.kind} for {k[-1]}{_by(v)}"),
}
"""A sentence for every event there is; a test holds the table to the registry."""
