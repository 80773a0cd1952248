"""What teams hold and have used of pools: charges, decayed use, accelerator-seconds.

Use is folded from jobs alone, at the times of their events, so that every reader of the
log comes to the same numbers.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from trainmaster.core.record import NEVER, Job
from trainmaster.scheduler.settings import USE_HALF_LIFE_SECONDS

_DECAY: Final = math.log(2) / USE_HALF_LIFE_SECONDS


@dataclass(slots=True, kw_only=True)
class Used:
    """A team's use of one pool as of `at`; `recent` is what it held on average."""

    at: datetime = NEVER
    accelerators: int = 0
    cpus: int = 0
    accelerator_seconds: float = 0.0
    recent_accelerators: float = 0.0
    recent_cpus: float = 0.0

    def change(self, at: datetime, accelerators: int, cpus: int) -> None:
        """Hold more, or less, from `at` on."""
        self._advance(at)
        self.accelerators += accelerators
        self.cpus += cpus

    def _advance(self, at: datetime) -> None:
        seconds = (at - self.at).total_seconds()
        if seconds > 0:
            kept = math.exp(-_DECAY * seconds)
            self.recent_accelerators = _mixed(
                self.recent_accelerators, self.accelerators, kept
            )
            self.recent_cpus = _mixed(self.recent_cpus, self.cpus, kept)
            if self.at is not NEVER and self.at != NEVER:
                self.accelerator_seconds += self.accelerators * seconds
            self.at = at

    def recent(self, at: datetime) -> tuple[float, float]:
        """Give the decayed averages of accelerators and cores at a later time."""
        kept = math.exp(-_DECAY * max(0.0, (at - self.at).total_seconds()))
        return (
            _mixed(self.recent_accelerators, self.accelerators, kept),
            _mixed(self.recent_cpus, self.cpus, kept),
        )

    def seconds(self, at: datetime) -> float:
        """Give all accelerator-seconds up to a later time."""
        if self.at == NEVER:
            return 0.0
        since = max(0.0, (at - self.at).total_seconds())
        return self.accelerator_seconds + self.accelerators * since


def _mixed(average: float, held: int, kept: float) -> float:
    return average * kept + held * (1 - kept)


@dataclass(slots=True, kw_only=True)
class TeamUse:
    """One team's use, by pool."""

    by_pool: dict[str, Used] = field(default_factory=dict[str, Used])

    def of(self, pool: str) -> Used:
        """Give the use of one pool, to be changed."""
        known = self.by_pool.get(pool)
        if known is None:
            known = self.by_pool[pool] = Used()
        return known


NOTHING: Final = Used()


def used_of(use: Mapping[str, Used], pool: str) -> Used:
    """Give the use of one pool, to be read."""
    return use.get(pool, NOTHING)


def charge_of(job: Job) -> tuple[int, int]:
    """Count accelerators and cores that a job has not given back."""
    if not job.unreclaimed:
        return 0, 0
    slots = [slot for slots in job.unreclaimed.values() for slot in slots]
    if job.spec.accelerators_per_node:
        return _devices(slot.accelerators for slot in slots), 0
    return 0, len(slots) * job.spec.cpus_per_node


def _devices(slots: Iterable[tuple[int, ...]]) -> int:
    return sum(map(len, slots))
