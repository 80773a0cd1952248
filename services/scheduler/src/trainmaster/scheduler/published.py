"""Which reasons stand on STATUS: one last value per waiting job, owned by its id."""

from collections.abc import Iterable, Mapping

from trainmaster.core import subjects
from trainmaster.core.decision import Changed
from trainmaster.core.ids import JobId
from trainmaster.core.model import Message
from trainmaster.scheduler.state import State


def owner_of(subject: str) -> str:
    """Name the job whose reasons stand under a subject, "" for another value."""
    key = subjects.parse_waiting(subject)
    return "" if key is None else key.job


def wanted(state: State, owner: str) -> Mapping[str, Message]:
    """Give a job's reasons, nothing for one that does not wait."""
    job = state.jobs.by_id(JobId(owner))
    reasons = None if job is None else state.desk.waiting.get(job.key)
    if job is None or reasons is None:
        return {}
    return {subjects.waiting(job.key): reasons}


def owners(state: State, changed: Iterable[Changed] | None) -> Iterable[str]:
    """Name whose reasons were revised: more than which jobs have changed."""
    revised = state.desk.take_revised()
    keys = state.desk.waiting.keys() if changed is None else revised
    return {key.job for key in keys}
