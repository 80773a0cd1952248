"""A reader that missed the end of a job, because it was purged, lets the job go."""

import pytest

from trainmaster.core.events import Archived
from trainmaster.core.job import Void
from trainmaster.core.jobs import Jobs
from trainmaster.core.record import FINAL, Job, JobState
from trainmaster.testkit.builders import KEY, LIVES, a_history, a_log, an_entry

pytestmark = pytest.mark.unit
ARCHIVED = an_entry(Archived(attempt=7), key=KEY, seq=100)


def read(words: str) -> Jobs:
    jobs = Jobs()
    for entry in a_log(a_history(words)):
        jobs.fold(entry)
    return jobs


@pytest.mark.parametrize("state", sorted(set(LIVES) - FINAL - {JobState.NEW}))
def test_whoever_missed_the_end_lets_the_job_go(state: JobState):
    jobs = read(LIVES[state])
    outcome = jobs.fold(ARCHIVED)
    assert isinstance(outcome, Job)
    assert outcome.archived
    assert (outcome.state, dict(outcome.unreclaimed)) == (JobState.NEW, {})
    assert (dict(jobs), jobs.by_id(KEY.job), jobs.count(state)) == ({}, None, 0)


def test_whoever_missed_only_the_proofs_knows_how_it_ended():
    jobs = read("submitted placed ordered started ended failed")
    outcome = jobs.fold(ARCHIVED)
    assert isinstance(outcome, Job)
    assert (outcome.state, dict(outcome.unreclaimed)) == (JobState.FAILED, {})
    assert not jobs


def test_a_job_nobody_has_read_of_does_not_come_to_be():
    jobs = Jobs()
    assert isinstance(jobs.fold(ARCHIVED), Void)
    assert not jobs
