"""The live jobs of one reader: by key and by state, folded from the log."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from trainmaster.core.envelope import Entry
from trainmaster.core.events import Archived, Transition
from trainmaster.core.ids import JobId, JobKey
from trainmaster.core.job import Void, evolve
from trainmaster.core.record import FINAL, Job, JobState

_NEW: Final = Job(key=JobKey("", JobId("")))
"""Copied for every job not seen before: quicker than setting each default anew."""


_MISSED_PROOF: Final[Mapping[str, Any]] = {"archived": True, "unreclaimed": {}}
_MISSED: Final[Mapping[str, Any]] = {
    **_MISSED_PROOF,
    "state": JobState.NEW,
    "verdict": "how it ended was purged before it was read here",
}


def followed(job: Job, event: Transition, at: datetime) -> Job | Void:
    """Evolve a job, and let it go if the end of its log was purged before it was read.

    Only jobs that are over are archived. Who sees that of a job that lives has missed
    what lay between: nobody can read it any more.
    """
    outcome = evolve(job, event, at)
    missed = isinstance(event, Archived) and job.state is not JobState.NEW
    if missed and isinstance(outcome, Void) and not job.archived:
        return job.changed(_MISSED if job.state not in FINAL else _MISSED_PROOF)
    return outcome


class Jobs(dict[JobKey, Job]):
    """Live jobs; archived ones leave. Change it only through `fold` and `restore`."""

    def __init__(self) -> None:
        super().__init__()
        self._by_state: dict[JobState, dict[JobKey, None]] = {s: {} for s in JobState}
        self._by_id: dict[JobId, JobKey] = {}

    def fold(self, entry: Entry) -> Job | Void | None:
        """Evolve the entry's job; None when the entry is no transition of a job."""
        if not (isinstance(entry.key, JobKey) and isinstance(entry.event, Transition)):
            return None
        before = self.get(entry.key) or _NEW.changed({"key": entry.key})
        outcome = followed(before, entry.event, entry.time)
        if isinstance(outcome, Job):
            self.restore(outcome)
        return outcome

    def restore(self, job: Job) -> None:
        """Put a job in as it is, for example from a table."""
        before = self.get(job.key)
        if before is not None and (job.archived or before.state is not job.state):
            self._by_state[before.state].pop(job.key, None)
        if job.archived:
            self.pop(job.key, None)
            self._by_id.pop(job.key.job, None)
            return
        self[job.key] = job
        self._by_id[job.key.job] = job.key
        self._by_state[job.state][job.key] = None

    def in_state(self, *states: JobState) -> Iterator[Job]:
        """Yield the jobs in these states, in the order they came to them."""
        for state in states:
            for key in tuple(self._by_state[state]):
                yield self[key]

    def count(self, state: JobState) -> int:
        """Count the jobs in a state."""
        return len(self._by_state[state])

    def by_id(self, job: JobId) -> Job | None:
        """Find a job by its id alone."""
        key = self._by_id.get(job)
        return None if key is None else self.get(key)
