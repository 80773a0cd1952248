"""The end of things: late attempts, proof, verdict, again or over. Pure.

For every job at most one transition per decision, in this order: what a node proved is
given back, what is late is ended, what is settled is judged, what is final is archived.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from trainmaster.core import subjects
from trainmaster.core.decision import Changed, Decision, Write
from trainmaster.core.envelope import Entry
from trainmaster.core.events import (
    Archived,
    AttemptLost,
    AttemptReclaimed,
    StopRequested,
    Transition,
)
from trainmaster.core.ids import MemberKey, NodeKey
from trainmaster.core.moment import Interval, Moment
from trainmaster.core.record import FINAL, LIVE, Job, JobState
from trainmaster.core.values import Cause, Proof
from trainmaster.core.verdict import Patience, WaitFor, judge
from trainmaster.reaper import state as state_
from trainmaster.reaper.settings import ReaperSettings
from trainmaster.reaper.state import NodeSeen, State

ARCHIVED_FACT: Final = "archived:"
BLIND_FACT: Final = "blind:"
_LAUNCHER, _CHECKPOINTS = "launcher", "checkpoint-manager"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What one decision is made with, per service that is waited for."""

    state: State
    facts: Mapping[str, Any]
    launcher: Moment
    settling: Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What to say about one job now, or when to look again."""

    event: Transition | None = None
    wake_at: datetime | None = None


_NOTHING: Final = Step()


class Reaper:
    """Ends, gives back, retries and judges."""

    name = "reaper"
    hears = (
        subjects.all_of("job"),
        subjects.all_of("note"),
        subjects.all_of("member"),
        subjects.all_of("node"),
    )

    def __init__(self, settings: ReaperSettings) -> None:
        self._settings = settings
        self._patience = Patience(
            proof_seconds=settings.proof_seconds,
            evidence_seconds=settings.evidence_seconds,
        )

    def fold(self, state: State, entry: Entry) -> Iterable[Changed]:
        """Take one event in and name the rows it touched."""
        return state_.fold(state, entry)

    def decide(self, state: State, facts: Mapping[str, Any], now: Moment) -> Decision:
        """Say what ends, what is given back, what is tried again."""
        outlook = Outlook(
            state=state,
            facts=facts,
            launcher=_moment(now, facts, _LAUNCHER),
            # no `close` is ordered, so no proof comes, while the launcher is away
            settling=_moment(now, facts, _LAUNCHER, _CHECKPOINTS),
        )
        steps = [
            (job, self._step(job, outlook))
            for job in state.jobs.in_state(*LIVE, JobState.SETTLING, *FINAL)
        ]
        waiting = state.jobs.in_state(JobState.QUEUED, JobState.HELD)
        steps += [(job, _reclaim(job, outlook)) for job in waiting if job.unreclaimed]
        return Decision(
            groups=tuple(
                (Write(key=job.key, event=step.event),)
                for job, step in steps
                if step.event is not None
            ),
            wake_at=min(
                (step.wake_at for _, step in steps if step.wake_at is not None),
                default=None,
            ),
        )

    def _step(self, job: Job, outlook: Outlook) -> Step:
        given_back = _reclaim(job, outlook)
        if given_back.event is not None:
            return given_back
        if job.state in FINAL:
            return _archive(job, outlook)
        if job.state is JobState.SETTLING:
            return self._judge(job, outlook)
        return self._late(job, outlook)

    def _late(self, job: Job, outlook: Outlook) -> Step:
        """End an attempt whose launcher, node or training overran a deadline."""
        lost = self._lost(job, outlook)
        if lost.event is not None:
            return lost
        since, seconds, cause = self._limit(job)
        if seconds <= 0:
            return lost
        now = outlook.launcher
        if not now.overdue(since, seconds):
            due = now.deadline(since, seconds)
            return Step(wake_at=min(due, lost.wake_at or due))
        if job.state is JobState.RUNNING:
            return Step(
                event=StopRequested(
                    attempt=job.attempt,
                    cause=cause,
                    reason=f"{cause} of {seconds:g} s is over",
                    grace_seconds=job.spec.stop_grace_seconds,
                )
            )
        reason = f"still {job.state} after {seconds:g} s"
        return Step(
            event=AttemptLost(
                attempt=job.attempt, cause=cause, reason=reason, nodes=job.nodes
            )
        )

    def _limit(self, job: Job) -> tuple[datetime, float, Cause]:
        """Say since when, how long and why the job may stay in its state."""
        settings, spec = self._settings, job.spec
        match job.state:
            case JobState.PLACED:
                return job.since, settings.prepare_seconds, Cause.DEADLINE
            case JobState.STARTING:
                return job.since, settings.start_seconds, Cause.DEADLINE
            case JobState.STOPPING:
                grace = job.stop.grace_seconds if job.stop else spec.stop_grace_seconds
                cause = job.stop.cause if job.stop else Cause.DEADLINE
                return job.since, grace + settings.stop_margin_seconds, cause
            case _:
                return _running_limit(job)

    def _lost(self, job: Job, outlook: Outlook) -> Step:
        """Give an attempt up once one of its nodes has been silent for too long."""
        for name in job.nodes:
            node = outlook.state.nodes.get(NodeKey(job.pool, name), NodeSeen())
            if not node.lost or node.lost_at is None:
                continue
            since = max(node.lost_at, job.placed_at or node.lost_at)
            seconds = self._settings.node_lost_seconds
            if not outlook.launcher.overdue(since, seconds):
                return Step(wake_at=outlook.launcher.deadline(since, seconds))
            reason = f"node {name} is silent since {node.lost_at:%H:%M:%S}"
            return Step(
                event=AttemptLost(
                    attempt=job.attempt,
                    cause=Cause.NODE_LOST,
                    reason=reason,
                    nodes=(name,),
                )
            )
        return _NOTHING

    def _judge(self, job: Job, outlook: Outlook) -> Step:
        evidence = outlook.state.evidence_of(job)
        verdict = judge(job, evidence, outlook.settling, self._patience)
        if isinstance(verdict, WaitFor):
            return Step(wake_at=verdict.until)
        return Step(event=verdict)


def _running_limit(job: Job) -> tuple[datetime, float, Cause]:
    spec, started = job.spec, job.started_at or job.since
    total = (job.submitted_at, spec.total_limit_seconds, Cause.TOTAL_LIMIT)
    attempt = (started, spec.time_limit_seconds, Cause.TIME_LIMIT)
    limits = [limit for limit in (total, attempt) if limit[1] > 0]
    if not limits:
        return started, 0.0, Cause.UNSPECIFIED
    return min(limits, key=lambda limit: limit[0].timestamp() + limit[1])


def _reclaim(job: Job, outlook: Outlook) -> Step:
    """Give back the nodes of one ended attempt that have shown proof."""
    for attempt, members in sorted(job.unreclaimed.items()):
        if attempt == job.attempt and job.state in LIVE:
            continue
        proofs = [
            proof
            for member in members
            if (proof := _proof(job, attempt, member.node, outlook.state)) is not None
        ]
        if proofs:
            nodes = tuple(proof.node for proof in proofs)
            return Step(
                event=AttemptReclaimed(
                    attempt=attempt, nodes=nodes, proofs=tuple(proofs)
                )
            )
    return _NOTHING


def _proof(job: Job, attempt: int, name: str, state: State) -> Proof | None:
    """Find what shows that nothing of the attempt is left on the node."""
    node = NodeKey(job.pool, name)
    given = state.proofs.get(MemberKey(*node, job.key.job, attempt))
    if given is not None:
        return Proof(node=name, how=given.how or "closed", detail=given.detail)
    seen = state.nodes.get(node, NodeSeen())
    never_started = attempt == job.attempt and job.start is None
    if never_started and seen.lost:
        return Proof(
            node=name, how="never_started", detail="no start was ordered on the log"
        )
    return None


def _archive(job: Job, outlook: Outlook) -> Step:
    entries = outlook.facts.get(ARCHIVED_FACT + job.key.job)
    if entries is None or any(job.unreclaimed.values()):
        return _NOTHING
    return Step(event=Archived(attempt=job.attempt, entries=entries))


def archivable(state: State) -> Iterable[Job]:
    """List the jobs whose log may go to the archive."""
    return (job for job in state.jobs.in_state(*FINAL) if not job.unreclaimed)


def _moment(now: Moment, facts: Mapping[str, Any], *services: str) -> Moment:
    """Add the times when services that are waited for were not there."""
    away: list[Interval] = []
    for service in services:
        away += facts.get(BLIND_FACT + service, ())
    return Moment(at=now.at, blind=(*now.blind, *away))
