"""Rules 1, 3, 4 and 6: how the attempts of one job end, and how the job does."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Final

from trainmaster.core.events import (
    Archived,
    AttemptEnded,
    AttemptLost,
    AttemptPlaced,
    AttemptReclaimed,
    AttemptTransition,
    Cancelled,
    CancelRequested,
    Requeued,
    StartOrdered,
    Submitted,
    Succeeded,
    Transition,
    Verdict,
)
from trainmaster.core.record import FINAL, Job, JobState
from trainmaster.core.values import Cause, RankExit
from trainmaster.testkit.replay import Part, Replay, Reports, Step

_AFTER_CANCEL: Final = FINAL | {JobState.STOPPING, JobState.SETTLING}


def check_endings(steps: Sequence[Step], history: Replay) -> Iterator[str]:
    """Rule 1: one ending per attempt counts, and the evidence decides what follows."""
    endings: dict[int, Step] = {}
    for step in filter(lambda step: step.counts, steps):
        match step.event:
            case AttemptEnded(attempt=attempt) | AttemptLost(attempt=attempt):
                if attempt in endings:
                    yield f"rule 1: {step.where}: {endings[attempt].where} counts too"
                endings.setdefault(attempt, step)
            case Verdict(attempt=attempt) | Requeued(attempt=attempt) if attempt:
                if attempt not in endings:
                    yield f"rule 1: {step.where}: attempt {attempt} has not ended"
                if _had_succeeded(step, steps, history):
                    yield f"rule 1: {step.where}: all ranks had exited 0 by themselves"
            case _:
                pass


def check_final(steps: Sequence[Step], history: Replay) -> Iterator[str]:
    """Rule 3: one final state, SUCCEEDED only with the declared evidence.

    After it only reclaims and the archiving count; an archived job takes nothing more,
    not even a new submission under its id.
    """
    for step in filter(lambda step: step.counts, steps):
        for problem in (*_misplaced(step), *_unfounded(step, history.reports)):
            yield f"rule 3: {step.where}: {problem}"
    for step, word in _follow_ups(steps, Verdict):
        if step.counts and not _only_clears(step):
            yield f"rule 3: {step.where}: counts after {word.where}"
    for step, end in _follow_ups(steps, Archived):
        if step.counts or isinstance(step.event, Submitted):
            yield f"rule 3: {step.where}: comes after {end.where}"


def check_old_attempts(steps: Sequence[Step]) -> Iterator[str]:
    """Rule 4: an event of another attempt changes nothing; a reclaim gives back."""
    for step in steps:
        event = step.event
        if not isinstance(event, AttemptTransition):
            continue
        expected = step.before.attempt + isinstance(event, AttemptPlaced)
        if isinstance(event, AttemptReclaimed):
            if differences(step.before, step.after) - {"unreclaimed"}:
                yield f"rule 4: {step.where}: does more than give back"
        elif event.attempt != expected and step.after != step.before:
            yield f"rule 4: {step.where}: attempt {event.attempt} is not {expected}"


def check_cancel(steps: Sequence[Step], history: Replay) -> Iterator[str]:
    """Rule 6: after `cancel_requested` no attempt starts, and only clean exits win."""
    closed = FINAL | {JobState.NEW}
    asked = [
        step
        for step in steps
        if isinstance(step.event, CancelRequested) and step.before.state not in closed
    ]
    for first in asked[:1]:
        if first.after.cancel is None:
            yield f"rule 6: {first.where}: the request is not kept"
        for step in (first, *_after(steps, first)):
            if step.counts:
                yield from _despite_cancel(step, history.reports)


# ------------------------------------------------------------------------------- parts


def _after(steps: Sequence[Step], first: Step) -> Sequence[Step]:
    return steps[steps.index(first) + 1 :]


def _had_succeeded(step: Step, steps: Sequence[Step], history: Replay) -> bool:
    """Tell whether the reaper must have known that all ranks exited 0 by themselves.

    It must when every node was given back for its `closed`, after the exits on MEMBERS.
    """
    job = step.before
    reports = history.reports.get((job.key.job, job.attempt))
    if reports is None or isinstance(step.event, Succeeded):
        return False
    proofs = {
        proof.node: proof.how
        for each in steps
        if isinstance(each.event, AttemptReclaimed)
        and each.event.attempt == job.attempt
        for proof in each.event.proofs
    }
    closed = {
        node: event.proof.how or "closed" for node, (_, event) in reports.closed.items()
    }
    told = all(closed.get(node) == proofs.get(node, "") for node in job.nodes)
    known = told and not (job.owes_proof() or reports.exited_after_close)
    free = not (job.stop or job.cancel or _declared(job))
    return free and known and _all_clean(job, tuple(reports.exits.values()))


def _follow_ups(
    steps: Sequence[Step], kind: type[Transition]
) -> Iterator[tuple[Step, Step]]:
    """Yield every step after the first counting one of a kind, with that one."""
    firsts = [s for s in steps if s.counts and isinstance(s.event, kind)][:1]
    return ((step, first) for first in firsts for step in _after(steps, first))


def _only_clears(step: Step) -> bool:
    """Tell whether a step is what may follow a final word."""
    clears = isinstance(step.event, AttemptReclaimed | Archived)
    return clears and step.after.state is step.before.state


def _misplaced(step: Step) -> Iterator[str]:
    """Say whether a final word ends nothing, or the archive takes what is not over."""
    if isinstance(step.event, Verdict) and step.after.state not in FINAL:
        yield f"leads to {step.after.state}"
    if isinstance(step.event, Archived) and step.before.state not in FINAL:
        yield f"comes in {step.before.state}"


def _unfounded(step: Step, reports: Mapping[Part, Reports]) -> Iterator[str]:
    """Say what a final word lacks."""
    job = step.before
    match step.event:
        case Cancelled(cause=cause):
            if job.cancel is None and cause is not Cause.DEPENDENCY:
                yield "nobody asked for it"
        case Succeeded() as event if _declared(job):
            if job.spec.success.step > event.step:
                yield f"comes before the declared step {job.spec.success.step}"
            if not event.evidence:
                yield "names no evidence of what was declared"
        case Succeeded(evidence=evidence):
            yield from _unclean(job, evidence, _exits_of(job, reports))
        case _:
            pass


def _unclean(
    job: Job, evidence: Sequence[str], exits: Sequence[RankExit]
) -> Iterator[str]:
    """Say what an undeclared success lacks: exit 0 of all ranks, by themselves."""
    lost = job.ended is None or job.ended.lost
    if lost and not exits:
        if not evidence:
            yield "no exit record and no other evidence"
    elif not _all_clean(job, exits):
        yield "not every rank exited 0 by itself"


def _despite_cancel(step: Step, reports: Mapping[Part, Reports]) -> Iterator[str]:
    if isinstance(step.event, AttemptPlaced | StartOrdered | Requeued):
        yield f"rule 6: {step.where}: comes after the cancel request"
    elif step.after.state not in _AFTER_CANCEL:
        yield f"rule 6: {step.where}: leads to {step.after.state} after the request"
    exits = _exits_of(step.before, reports)
    if isinstance(step.event, Succeeded) and not _all_clean(step.before, exits):
        yield f"rule 6: {step.where}: cancelled, and not every rank exited 0"


def _declared(job: Job) -> bool:
    """Tell whether the job says itself what success is."""
    wanted = job.spec.success
    return bool(wanted.step or wanted.checkpoint)


def _exits_of(job: Job, reports: Mapping[Part, Reports]) -> Sequence[RankExit]:
    """Find the exits of the last attempt; the agents' own words are stronger."""
    ended = () if job.ended is None else job.ended.exits
    told = reports.get((job.key.job, job.attempt), Reports())
    return tuple({**{each.rank: each for each in ended}, **told.exits}.values())


def _all_clean(job: Job, exits: Sequence[RankExit]) -> bool:
    wanted = sum(member.ranks for member in job.members)
    clean = {each.rank for each in exits if each.clean}
    return len(clean) >= wanted > 0 and all(each.clean for each in exits)


def differences(one: Job, other: Job) -> set[str]:
    """Name the fields in which two readings of a job differ."""
    if one == other:
        return set()
    names = {each.name for each in fields(Job)}
    return {name for name in names if getattr(one, name) != getattr(other, name)}
