"""Who may stop whom, and what would be lost by it. Pure.

A class with the right to preempt stops jobs of less priority, those of other teams only
as long as its own team stays within its quota. A team takes back what is its own from
those who borrowed it, as far as its reclaim policy goes.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from trainmaster.core.record import Job, JobState
from trainmaster.scheduler.books import Books
from trainmaster.scheduler.running import terminating
from trainmaster.scheduler.settings import (
    PREEMPT_AGAIN_DOUBLINGS_MAX,
    PREEMPT_AGAIN_SECONDS,
)
from trainmaster.scheduler.snapshot import Request, Snapshot

_STOPPABLE: Final = frozenset({JobState.PLACED, JobState.STARTING, JobState.RUNNING})


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """What one request may do to others."""

    request: Request
    preempts: bool
    own: bool
    reclaims: bool
    any_priority: bool

    @property
    def none(self) -> bool:
        """It may do nothing."""
        return not (self.preempts or self.reclaims)


def rights_of(request: Request, snapshot: Snapshot, books: Books) -> Rights:
    """Find out what a request may do to others."""
    team, charge = request.key.team, request.want.charge
    nominal = books.nominal(team)
    inside = nominal < 0 or books.held.get(team, 0) + charge <= nominal
    reclaim = books.quota(team).reclaim
    return Rights(
        request=request,
        preempts=snapshot.settings.class_of(request.priority).preempts,
        own=inside,
        reclaims=nominal >= 0 and charge > 0 and inside and reclaim != "never",
        any_priority=reclaim in ("", "any"),
    )


def may_stop(rights: Rights, victim: Job, snapshot: Snapshot, books: Books) -> bool:
    """Tell whether a request may stop a job."""
    if victim.state not in _STOPPABLE or victim.cancel or victim.pool != snapshot.pool:
        return False
    if snapshot.settings.class_of(victim.priority).protected:
        return False
    if brake(victim, snapshot) > snapshot.now:
        return False
    lower = victim.priority < rights.request.priority
    same = victim.key.team == rights.request.key.team
    if rights.preempts and lower and (same or rights.own):
        return True
    return may_reclaim(rights, victim, books)


def may_reclaim(rights: Rights, victim: Job, books: Books, back: int = 0) -> bool:
    """Tell whether a job runs on what was borrowed; `back` was given back already."""
    if not rights.reclaims or victim.key.team == rights.request.key.team:
        return False
    if not (rights.any_priority or victim.priority < rights.request.priority):
        return False
    nominal = books.nominal(victim.key.team)
    return 0 <= nominal < books.held.get(victim.key.team, 0) - back


def brake(victim: Job, snapshot: Snapshot) -> datetime:
    """Say from when on a job may be stopped for others again: no thrashing."""
    times = snapshot.preempted.get(victim.key, 0)
    began = victim.placed_at or victim.since
    if not times:
        return began
    doublings = min(times - 1, PREEMPT_AGAIN_DOUBLINGS_MAX)
    return began + timedelta(seconds=PREEMPT_AGAIN_SECONDS * 2**doublings)


def lost_seconds(victim: Job, snapshot: Snapshot) -> float:
    """Count what a stop throws away: all since the last whole checkpoint.

    Accelerator-seconds, core-seconds of jobs that have no accelerator.
    """
    began = victim.started_at or victim.placed_at or victim.since
    saved = max(began, snapshot.saved_at.get(victim.key, began))
    slots = victim.unreclaimed.get(victim.attempt, ())
    width = sum(len(slot.accelerators) for slot in slots)
    width = width or len(slots) * victim.spec.cpus_per_node
    return max(width, 1) * max((snapshot.now - saved).total_seconds(), 0.0)


def going(victim: Job, now: datetime) -> bool:
    """Tell whether a job is on its way out and should be gone soon."""
    return terminating(victim, now) is not None
