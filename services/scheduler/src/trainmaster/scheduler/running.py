"""When what runs will be over, and what each node will then have free. Pure.

A limit is a promise, so is the deadline of a stop; without either nobody knows. Who
should be gone and is not is no longer counted on.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from trainmaster.core.ids import JobKey
from trainmaster.core.record import FINAL, Job, JobState
from trainmaster.scheduler.settings import VICTIM_PATIENCE_SECONDS
from trainmaster.scheduler.snapshot import Snapshot

_ENDING = frozenset({JobState.STOPPING, JobState.SETTLING, JobState.QUEUED}) | FINAL


class Release(NamedTuple):
    """What one job will give back on one node; `at` is None when nobody knows."""

    at: datetime | None
    job: JobKey
    devices: int
    cpus: int
    memory_bytes: int


def terminating(job: Job, now: datetime) -> datetime | None:
    """Say when a job that is on its way out should be gone; None for all others."""
    if job.state not in _ENDING:
        return None
    since, grace = job.since, VICTIM_PATIENCE_SECONDS
    if job.state is JobState.STOPPING and job.stop is not None:
        since, grace = job.stop.at, grace + max(job.stop.grace_seconds, 0.0)
    due = _later(since, grace)
    return due if due is not None and due > now else None


def over_at(job: Job, now: datetime) -> datetime | None:
    """Say when a job will be gone at the latest; None when nobody knows."""
    if job.state in _ENDING:
        return terminating(job, now)
    limit = job.spec.time_limit_seconds
    if limit <= 0:
        return None
    began = job.started_at or job.placed_at or job.since
    due = _later(began, limit + job.spec.stop_grace_seconds)
    return None if due is None else max(due, now)


def _later(at: datetime, seconds: float) -> datetime | None:
    try:
        return at + timedelta(seconds=seconds)
    except (OverflowError, ValueError):  # a limit beyond all calendars is none
        return None


@dataclass(slots=True)
class Releases:
    """What will be given back, node by node, looked up once per plan."""

    snapshot: Snapshot
    _by_node: dict[str, tuple[Release, ...]] = field(
        default_factory=dict[str, tuple[Release, ...]]
    )
    _empty: dict[str, datetime | None] = field(
        default_factory=dict[str, datetime | None]
    )
    _over: dict[JobKey, datetime | None] = field(
        default_factory=dict[JobKey, datetime | None]
    )

    def on(self, node: str) -> tuple[Release, ...]:
        """List what will be given back on a node, in order; the unknown come last."""
        known = self._by_node.get(node)
        if known is None:
            found = sorted(self._of(node), key=_soonest)
            known = self._by_node[node] = tuple(found)
        return known

    def empty_at(self, node: str) -> datetime | None:
        """Say when a node has got back all of its devices; None when nobody knows."""
        if node not in self._empty:
            releases = self.on(node)
            self._empty[node] = releases[-1].at if releases else self.snapshot.now
        return self._empty[node]

    def _of(self, node: str) -> Iterator[Release]:
        snapshot = self.snapshot
        for key in snapshot.tenants.get(node, ()):
            job = snapshot.jobs.get(key)
            if job is None:
                continue
            if key not in self._over:
                self._over[key] = over_at(job, snapshot.now)
            spec = job.spec
            for slots in job.unreclaimed.values():
                for slot in slots:
                    if slot.node == node:
                        yield Release(
                            self._over[key],
                            key,
                            len(slot.accelerators),
                            0 if spec.accelerators_per_node else spec.cpus_per_node,
                            spec.memory_bytes_per_node,
                        )


def _soonest(release: Release) -> tuple[bool, float, JobKey]:
    at = release.at
    return at is None, at.timestamp() if at else 0.0, release.job
