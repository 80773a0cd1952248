"""How jobs ended that others wait for, and what follows for those who wait.

A job leaves all live state when it is archived, but one with `after` may still have to
know how it ended. Endings are kept while a live job refers to them, and the newest ones
besides, because a submission may refer to a job that is archived at that moment.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from trainmaster.core.ids import JobId, JobKey
from trainmaster.core.record import FINAL, Job, JobState
from trainmaster.core.spec import AfterSpec

KEPT_MAX: Final = 1000
"""How many endings are kept that nobody is known to wait for."""


class Fate(StrEnum):
    """What may become of a job that waits for others."""

    GO = "go"
    WAIT = "wait"
    NEVER = "never"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """Whether a job may start, and the jobs that this rests on."""

    fate: Fate
    jobs: tuple[JobId, ...] = ()


def parents_of(after: AfterSpec) -> tuple[JobId, ...]:
    """List the jobs that are waited for."""
    return tuple(map(JobId, (*after.succeeded, *after.ended, *after.failed)))


def outlook(after: AfterSpec, state_of: Callable[[JobId], JobState]) -> Outlook:
    """Say whether a job with this `after` may start; any number never may.

    `state_of` gives a job's state; one that is not final is waited for.
    """
    wrong, open_ = list[JobId](), list[JobId]()
    for job, right in _wishes(after):
        state = state_of(job)
        if state not in FINAL:
            open_.append(job)
        elif state not in right:
            wrong.append(job)
    if wrong:
        return Outlook(fate=Fate.NEVER, jobs=tuple(wrong))
    if open_:
        return Outlook(fate=Fate.WAIT, jobs=tuple(open_))
    return Outlook(fate=Fate.GO)


def _wishes(after: AfterSpec) -> Iterator[tuple[JobId, frozenset[JobState]]]:
    for jobs, right in (
        (after.succeeded, frozenset({JobState.SUCCEEDED})),
        (after.ended, FINAL),
        (after.failed, frozenset({JobState.FAILED, JobState.CANCELLED})),
    ):
        for job in jobs:
            yield JobId(job), right


@dataclass(slots=True)
class Endings:
    """Final states by job, oldest first; change it only through `follow`."""

    by_job: dict[JobKey, JobState] = field(default_factory=dict[JobKey, JobState])
    _waited_for: Counter[JobKey] = field(default_factory=Counter[JobKey])
    _trim_at: int = 2 * KEPT_MAX

    def follow(self, before: Job | None, after: Job) -> Iterable[JobKey]:
        """Follow one job; names the endings that came or went."""
        if before is None:
            self._waited_for.update(_parents(after))
        if not after.archived:
            return ()
        self._waited_for -= Counter(_parents(after))
        self.by_job[after.key] = after.state
        return (after.key, *self._forget())

    def count(self, jobs: Iterable[Job]) -> None:
        """Learn who waits for whom after loading."""
        self._waited_for = Counter(key for job in jobs for key in _parents(job))

    def _forget(self) -> list[JobKey]:
        if len(self.by_job) < self._trim_at:  # seldom, as it looks at every ending
            return []
        unwanted = [key for key in self.by_job if not self._waited_for[key]]
        gone = unwanted[: max(0, len(unwanted) - KEPT_MAX)]
        for key in gone:
            del self.by_job[key]
        self._trim_at = len(self.by_job) + KEPT_MAX
        return gone


def _parents(job: Job) -> Iterator[JobKey]:
    return (JobKey(job.key.team, parent) for parent in parents_of(job.spec.after))
