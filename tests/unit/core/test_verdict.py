"""What becomes of a job whose attempt is over, and what is waited for until then."""

from datetime import timedelta

import pytest

from trainmaster.core.events import Cancelled, CheckpointChosen, Failed, Succeeded
from trainmaster.core.moment import Moment
from trainmaster.core.notes import CheckpointsScanned, CheckpointVerified
from trainmaster.core.record import Job
from trainmaster.core.spec import CheckpointSpec, JobSpec, SuccessSpec
from trainmaster.core.values import Cause, RestorePoint
from trainmaster.core.verdict import Evidence, Patience, WaitFor, informed, judge
from trainmaster.testkit.builders import a_history, a_spec, told

pytestmark = pytest.mark.unit
DIRECTORY = "/ckpt/run"
PATIENCE = Patience(proof_seconds=120, evidence_seconds=60)
CRASHED = "submitted placed ordered started ended reclaimed"
CLEAN = "submitted placed ordered started completed reclaimed"
LOOKED = Evidence(looked=1)


def a_spec_that_saves(**changes: object) -> JobSpec:
    checkpoint = CheckpointSpec(directory=DIRECTORY)
    return a_spec(**{"checkpoint": checkpoint, "retries_max": 0, **changes})


def a_told_job(words: str, **changes: object) -> Job:
    return told(a_history(words, spec=a_spec_that_saves(**changes)))


def after(job: Job, seconds: float = 1) -> Moment:
    return Moment(at=job.since + timedelta(seconds=seconds))


# ------------------------------------------------------------------- the last look


def test_a_job_does_not_fail_before_its_checkpoints_were_looked_at():
    job = a_told_job(CRASHED)
    waits = judge(job, Evidence(), after(job), PATIENCE)
    assert isinstance(waits, WaitFor)
    assert waits.until == job.since + timedelta(seconds=60)
    assert isinstance(judge(job, LOOKED, after(job), PATIENCE), Failed)


def test_what_the_last_look_proves_saves_a_job_whose_retries_are_used():
    job = a_told_job(CRASHED, success=SuccessSpec(step=500))
    proven = Evidence(verified=True, verified_step=500)
    assert isinstance(judge(job, Evidence(), after(job), PATIENCE), WaitFor)
    assert isinstance(judge(job, proven, after(job), PATIENCE), Succeeded)


def test_progress_that_the_last_look_proves_gives_retries_back():
    again = "chosen requeued placed ordered started ended reclaimed"
    job = a_told_job(f"{CRASHED} {again}", retries_max=1)
    used_up = Evidence(looked=2)
    assert isinstance(judge(job, used_up, after(job), PATIENCE), Failed)
    progressed = Evidence(looked=2, verified=True, verified_step=500)
    waits = judge(job, progressed, after(job), PATIENCE)
    assert waits == WaitFor(what="a restore point")


def test_an_early_exit_is_judged_as_soon_as_it_was_looked_at():
    job = a_told_job(CLEAN, success=SuccessSpec(step=500))
    assert isinstance(judge(job, Evidence(), after(job), PATIENCE), WaitFor)
    failed = judge(job, LOOKED, after(job), PATIENCE)
    assert isinstance(failed, Failed)
    assert failed.cause is Cause.EXITED_EARLY


def test_a_look_at_an_older_attempt_is_not_the_last():
    job = a_told_job(
        f"{CRASHED} chosen requeued placed ordered started ended reclaimed"
    )
    assert job.attempt == 2
    assert isinstance(judge(job, LOOKED, after(job), PATIENCE), WaitFor)


def test_past_the_deadline_a_job_is_judged_without_the_last_look():
    job = a_told_job(CRASHED)
    assert isinstance(judge(job, Evidence(), after(job, 60), PATIENCE), Failed)


def test_the_deadline_of_the_last_look_begins_with_the_last_proof():
    job = a_told_job(CRASHED)
    quiet = Evidence(quiet_at=job.since + timedelta(seconds=50))
    assert isinstance(judge(job, quiet, after(job, 100), PATIENCE), WaitFor)
    assert isinstance(judge(job, quiet, after(job, 110), PATIENCE), Failed)


def test_nobody_looks_while_a_proof_is_missing_so_nobody_waits_for_it():
    job = a_told_job("submitted placed ordered started ended")
    failed = judge(job, Evidence(), after(job, 120), PATIENCE)
    assert isinstance(failed, Failed)
    assert failed.unreclaimed == job.nodes


def test_a_choice_was_made_on_a_last_look():
    job = a_told_job(f"{CRASHED} chosen")
    assert not isinstance(judge(job, Evidence(), after(job), PATIENCE), WaitFor)


def test_a_job_without_checkpoints_is_judged_at_once():
    job = a_told_job(CRASHED, checkpoint=CheckpointSpec())
    assert isinstance(judge(job, Evidence(), after(job), PATIENCE), Failed)


def test_a_success_that_is_there_does_not_wait():
    job = a_told_job(CLEAN)
    assert isinstance(judge(job, Evidence(), after(job), PATIENCE), Succeeded)


def test_a_cancelled_job_does_not_wait_unless_it_may_have_succeeded():
    crashed = a_told_job(f"{CRASHED} cancel")
    assert isinstance(judge(crashed, Evidence(), after(crashed), PATIENCE), Cancelled)
    clean = a_told_job(f"{CLEAN} cancel", success=SuccessSpec(step=500))
    assert isinstance(judge(clean, Evidence(), after(clean), PATIENCE), WaitFor)
    assert isinstance(judge(clean, LOOKED, after(clean), PATIENCE), Cancelled)
    proven = Evidence(looked=1, verified=True, verified_step=500)
    assert isinstance(judge(clean, proven, after(clean), PATIENCE), Succeeded)


# ------------------------------------------------------------------- whose evidence


def test_a_checkpoint_of_no_attempt_is_no_evidence():
    note = CheckpointVerified(attempt=0, step=600)
    evidence = informed(Evidence(), note)
    assert evidence == Evidence(earlier_step=600)
    assert informed(evidence, CheckpointVerified(attempt=1, step=500)) == Evidence(
        earlier_step=600, verified=True, verified_step=500
    )


def test_evidence_never_shrinks():
    notes = (
        CheckpointVerified(attempt=1, step=500),
        CheckpointVerified(attempt=2, step=400),
        CheckpointsScanned(attempt=2),
        CheckpointsScanned(attempt=1),
    )
    evidence = Evidence()
    for note in notes:
        evidence = informed(evidence, note)
    assert evidence == Evidence(verified=True, verified_step=500, looked=2)


def test_a_job_that_exits_at_once_beside_an_older_run_has_not_succeeded():
    job = a_told_job(CLEAN, success=SuccessSpec(step=600))
    failed = judge(job, Evidence(looked=1, earlier_step=600), after(job), PATIENCE)
    assert isinstance(failed, Failed)
    assert failed.reason == (
        "all ranks exited 0 without a verified checkpoint of step 600; newest is step "
        "0; that of step 600 was there before the job"
    )


def a_resuming_job(origin: str, restore: RestorePoint, end: str) -> Job:
    spec = a_spec_that_saves(
        checkpoint=CheckpointSpec(directory=DIRECTORY, resume_from=origin),
        success=SuccessSpec(step=600, checkpoint=True),
    )
    chosen = CheckpointChosen(restore=restore)
    lives = a_history(f"submitted placed ordered started {end} reclaimed", spec=spec)
    return told([lives[0], chosen, *lives[1:]])


OWN = RestorePoint(path=f"{DIRECTORY}/step-000600", step=600)


def test_a_job_that_goes_on_from_its_own_directory_has_what_it_began_with():
    job = a_resuming_job(DIRECTORY, OWN, "completed")
    succeeded = judge(job, LOOKED, after(job), PATIENCE)
    assert isinstance(succeeded, Succeeded)
    assert succeeded.step == 600


def test_what_a_job_began_with_does_not_make_a_crash_a_success():
    job = a_resuming_job(DIRECTORY, OWN, "ended")
    assert isinstance(judge(job, LOOKED, after(job), PATIENCE), Failed)


def test_a_base_from_elsewhere_is_not_what_the_job_saved():
    base = RestorePoint(path="/models/base/step-000900", step=900)
    job = a_resuming_job("/models/base", base, "completed")
    assert isinstance(judge(job, LOOKED, after(job), PATIENCE), Failed)
