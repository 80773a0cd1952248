"""What the table alone does not say: attempts, proofs, fences, holds."""

from dataclasses import replace

import pytest

from trainmaster.core.events import (
    Archived,
    AttemptEnded,
    AttemptPlaced,
    AttemptTransition,
    CheckpointChosen,
    Requeued,
    Transition,
)
from trainmaster.core.job import TRANSITIONS, Void, evolve
from trainmaster.core.record import FINAL, Job, JobState
from trainmaster.core.spec import CheckpointSpec
from trainmaster.testkit.builders import (
    KEY,
    START,
    WORDS,
    a_history,
    a_job,
    a_placed,
    a_reclaimed,
    a_spec,
    said,
    told,
)

pytestmark = pytest.mark.unit

OF_AN_ATTEMPT = [
    word
    for word in WORDS
    if word != "reclaimed"
    and isinstance(said(Job(key=KEY), word, spec=a_spec()), AttemptTransition)
]
TO_SETTLING = "submitted placed ordered started ended"


def after(words: str) -> Job:
    return told(a_history(words))


def outcome(job: Job, said_now: str | Transition) -> Job | Void:
    is_word = isinstance(said_now, str)
    event = said(job, said_now, spec=a_spec()) if is_word else said_now
    return evolve(job, event, START)


def reason(job: Job, said_now: str | Transition) -> str:
    result = outcome(job, said_now)
    return result.reason if isinstance(result, Void) else ""


def moved(job: Job, said_now: str | Transition) -> Job:
    result = outcome(job, said_now)
    assert isinstance(result, Job), result
    return result


# ------------------------------------------------------------------------- attempts


@pytest.mark.parametrize("state", JobState)
@pytest.mark.parametrize("word", OF_AN_ATTEMPT)
def test_another_attempt_is_void_before_anything_else(state: JobState, word: str):
    job = a_job(state)
    event = said(job, f"{word}@7", spec=a_spec())
    current = job.attempt + (word == "placed")
    assert reason(job, event) == f"attempt 7 is not the current one ({current})"


def test_an_old_attempt_is_reclaimed_while_the_new_one_runs():
    job = after(f"{TO_SETTLING} fenced placed ordered started")
    assert set(job.unreclaimed) == {1, 2}
    back = moved(job, "reclaimed@1")
    assert back == replace(job, unreclaimed={2: job.members})


def test_the_next_attempt_has_the_next_number():
    job = after(f"{TO_SETTLING} reclaimed requeued")
    assert moved(job, "placed@2").attempt == 2
    for wrong in ("placed@0", "placed@1", "placed@3"):
        assert "is not the current one (2)" in reason(job, wrong)


def test_a_new_attempt_forgets_how_the_old_one_ended():
    job = after(f"{TO_SETTLING} reclaimed chosen requeued placed")
    assert (job.start, job.started_at, job.stop, job.ended) == (None,) * 4
    assert job.restore is not None
    assert job.restore.step == 10
    assert job.chosen is None


def test_an_attempt_needs_nodes_each_of_them_once():
    job = after("submitted")
    assert "at least one node" in reason(job, AttemptPlaced(attempt=1))
    assert "each of them once" in reason(job, a_placed(1, ("n1", "n1")))


# ------------------------------------------------------------- one ending per attempt


@pytest.mark.parametrize("first", ["ended", "completed", "lost"])
@pytest.mark.parametrize("second", ["ended", "completed", "lost"])
def test_the_first_ending_counts_and_the_second_is_void(first: str, second: str):
    job = after(f"submitted placed ordered started {first}")
    assert reason(job, second).endswith("does not follow settling")
    assert job.ended is not None
    assert job.ended.lost is (first == "lost")


# -------------------------------------------------------------------------- reclaims


def test_an_attempt_is_reclaimed_only_after_its_end():
    for words in (
        "submitted placed",
        "submitted placed ordered",
        "submitted placed ordered started",
        "submitted placed stop",
    ):
        assert reason(after(words), "reclaimed") == "the attempt has not ended"


def test_a_node_is_reclaimed_once():
    job = moved(after(TO_SETTLING), "reclaimed:n1")
    assert job.owes_proof() == ("n2",)
    assert reason(job, "reclaimed:n1") == "not charged for these nodes"
    assert moved(job, "reclaimed:n2").unreclaimed == {}


@pytest.mark.parametrize("nodes", [(), ("n3",), ("n1", "n3")])
def test_what_is_not_charged_is_not_reclaimed(nodes: tuple[str, ...]):
    job = after(TO_SETTLING)
    assert reason(job, a_reclaimed(1, nodes)) == "not charged for these nodes"


@pytest.mark.parametrize("end", sorted(FINAL))
def test_a_final_job_is_still_reclaimed(end: JobState):
    job = after(f"submitted placed cancel completed {end}")
    assert job.state is end
    assert moved(job, "reclaimed") == replace(job, unreclaimed={})


# ------------------------------------------------------------------------- requeueing


def test_a_requeue_needs_the_proof_of_every_node():
    job = after(TO_SETTLING)
    assert reason(job, "requeued") == "no proof of n1, n2"
    half = moved(job, "reclaimed:n2")
    assert reason(half, "requeued") == "no proof of n1"
    assert moved(moved(half, "reclaimed"), "requeued").state is JobState.QUEUED


def test_a_fence_stands_for_a_proof_and_the_charge_goes_on():
    job = moved(after(TO_SETTLING), "reclaimed:n1")
    assert reason(job, Requeued(attempt=1, fenced=("n1",))) == "no proof of n2"
    again = moved(job, Requeued(attempt=1, fenced=("n2",)))
    assert [m.node for m in again.unreclaimed[1]] == ["n2"]
    assert [m.node for m in moved(again, "placed").unreclaimed[1]] == ["n2"]


def spent_by(job: Job) -> tuple[int, int, int]:
    return job.retries_used, job.step, job.attempts_without_progress


def test_progress_gives_the_retries_back():
    job = after(TO_SETTLING + " reclaimed")
    once = moved(job, Requeued(attempt=1, charged=True, step=3))
    assert spent_by(once) == (1, 3, 1)
    second = told(
        [a_placed(2), AttemptEnded(attempt=2), a_reclaimed(2, ("n1", "n2"))], job=once
    )
    less = moved(second, Requeued(attempt=2, charged=True, step=1))
    assert spent_by(less) == (2, 3, 2)
    more = moved(second, Requeued(attempt=2, charged=True, progressed=True, step=9))
    assert spent_by(more) == (1, 9, 1)


# ------------------------------------------------------------------------------ holds


def test_a_hold_while_settling_leads_to_held_once():
    job = after(f"{TO_SETTLING} held reclaimed requeued")
    assert (job.state, job.hold) == (JobState.HELD, False)
    later = told(a_history(f"{TO_SETTLING} held reclaimed requeued released placed"))
    again = told([AttemptEnded(attempt=2), a_reclaimed(2, ("n1", "n2"))], job=later)
    assert moved(again, "requeued").state is JobState.QUEUED


def test_a_job_may_be_submitted_held():
    assert told(a_history("submitted", spec=a_spec(hold=True))).state is JobState.HELD


# -------------------------------------------------------------------- restore points


def test_a_queued_job_takes_a_restore_point_only_before_its_first_attempt():
    chosen, origin = CheckpointChosen(), CheckpointSpec(resume_from="elsewhere")
    waits = told(a_history("submitted", spec=a_spec(checkpoint=origin)))
    assert moved(waits, chosen).chosen == chosen
    refused = "only a first attempt with `resume_from` waits for a restore point"
    assert reason(after("submitted"), chosen) == refused
    again = told(
        a_history(f"{TO_SETTLING} reclaimed requeued", spec=a_spec(checkpoint=origin))
    )
    assert reason(again, CheckpointChosen(attempt=1)) == refused


# -------------------------------------------------------------------------- archiving


def test_a_job_is_archived_once_and_only_when_all_nodes_are_reclaimed():
    job = after("submitted placed lost failed")
    assert reason(job, "archived") == "nodes are still charged"
    over = moved(moved(job, "reclaimed"), "archived")
    assert over.archived
    assert reason(over, "archived") == "archived already"


def test_an_older_attempt_that_owes_proof_keeps_the_job_from_the_archive():
    job = after(f"{TO_SETTLING} fenced placed completed reclaimed succeeded")
    assert reason(job, Archived(attempt=2)) == "nodes are still charged"


# ------------------------------------------------------------------------------- times


def test_a_job_knows_since_when_it_is_in_its_state():
    job = a_job(JobState.RUNNING)
    later = START.replace(year=2030)
    same = evolve(job, said(job, "reprioritized", spec=a_spec()), later)
    other = evolve(job, said(job, "stop", spec=a_spec()), later)
    assert isinstance(same, Job)
    assert isinstance(other, Job)
    assert (same.since, other.since) == (job.since, later)


def test_an_event_the_table_does_not_know_is_void():
    class Invented(Transition):
        """Nobody says this."""

    assert Invented not in TRANSITIONS
    result = evolve(a_job(JobState.RUNNING), Invented(), START)
    assert result == Void(reason="Invented does not follow running")
