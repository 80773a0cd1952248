"""What happens to a job whose attempt is over: again, over, or wait for what. Pure.

The reaper acts on it and the checkpoint-manager asks it, so that a restore point is
chosen only on the way to another attempt.
"""

import hashlib
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import PurePosixPath
from typing import Final

from trainmaster.core.events import Cancelled, Event, Failed, Requeued, Succeeded
from trainmaster.core.moment import Moment
from trainmaster.core.notes import CheckpointsScanned, CheckpointVerified
from trainmaster.core.record import Job
from trainmaster.core.values import Cause, RestorePoint

_FREE: Final = frozenset({Cause.PREEMPTED})
_HOPELESS: Final = frozenset({Cause.TOTAL_LIMIT, Cause.CANCELLED})
_BACKOFF_FIRST_SECONDS: Final = 1.0
_BACKOFF_MOST_SECONDS: Final = 300.0
_BLAMED_ON_NODE: Final = frozenset(
    {Cause.INFRASTRUCTURE, Cause.NODE_LOST, Cause.PREPARE_FAILED, Cause.START_FAILED}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What is known beside the log of transitions.

    The highest step of a checkpoint that the job saved and that is proven whole, 0 for
    none, and of one that was there before it; the last attempt whose checkpoints were
    looked at when nobody could write any more, and since when that was so; and whether
    every rank of the attempt was reported to have exited 0 unstopped, even if the
    attempt was given up before the last report came.
    """

    verified_step: int = 0
    verified: bool = False
    earlier_step: int = 0
    looked: int = 0
    quiet_at: datetime | None = None
    all_exited_clean: bool = False


def informed(evidence: Evidence, event: Event) -> Evidence:
    """Add what a note says; whoever reads the notes counts alike."""
    match event:
        case CheckpointVerified(attempt=0, step=step):
            return replace(evidence, earlier_step=max(step, evidence.earlier_step))
        case CheckpointVerified(step=step):
            step = max(step, evidence.verified_step)
            return replace(evidence, verified=True, verified_step=step)
        case CheckpointsScanned(attempt=attempt):
            return replace(evidence, looked=max(attempt, evidence.looked))
        case _:
            return evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long a settling job waits before it is judged without what is missing."""

    proof_seconds: float = 120.0
    evidence_seconds: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitFor:
    """What is missing; judged without it from `until` on, None means never."""

    what: str
    until: datetime | None = None


Judgement = Requeued | Succeeded | Failed | Cancelled | WaitFor


def judge(job: Job, evidence: Evidence, now: Moment, patience: Patience) -> Judgement:
    """Judge a job in SETTLING."""
    owed = job.owes_proof()
    if owed and not now.overdue(job.since, patience.proof_seconds):
        until = now.deadline(job.since, patience.proof_seconds)
        return WaitFor(what=f"proof of {', '.join(owed)}", until=until)
    if job.clean or not job.cancel:
        if _succeeded(job, evidence):
            return _success(job, evidence)
        look = _last_look(job, evidence, now, patience)
        if look is not None:
            return look
    if job.cancel:
        return Cancelled(
            attempt=job.attempt,
            cause=Cause.CANCELLED,
            reason=job.cancel.reason or f"cancelled by {job.cancel.by}",
            unreclaimed=owed,
        )
    if _clean(job, evidence):
        return _exited_early(job, evidence)
    return _again_or_over(job, evidence, now)


def will_retry(job: Job, evidence: Evidence) -> bool:
    """Tell whether a settling job goes on, given proofs and a restore point."""
    if (
        job.cancel
        or job.ended is None
        or _clean(job, evidence)
        or _succeeded(job, evidence)
    ):
        return False
    return not _over(job, evidence)


def satisfied(job: Job, evidence: Evidence) -> bool:
    """Tell whether all evidence that the job declares is there."""
    wanted = job.spec.success
    if wanted.step and evidence.verified_step < wanted.step:
        return False
    return evidence.verified if wanted.checkpoint else True


def _with_resumed(job: Job, evidence: Evidence) -> Evidence:
    """Count what the job goes on from in its own directory because a user said so.

    Other checkpoints that were there before the job are nobody's evidence for it.
    """
    restore = job.restore if job.spec.checkpoint.resume_from else None
    if restore is None or not _is_own(job, restore):
        return evidence
    step = max(restore.step, evidence.verified_step)
    return replace(evidence, verified=True, verified_step=step)


def _is_own(job: Job, restore: RestorePoint) -> bool:
    own = job.spec.checkpoint.directory
    return bool(own) and PurePosixPath(restore.path).is_relative_to(own)


def _clean(job: Job, evidence: Evidence) -> bool:
    """Tell whether all ranks ended well, whichever report came first."""
    return job.clean or (job.ended is not None and evidence.all_exited_clean)


def _declared(job: Job) -> bool:
    return bool(job.spec.success.step or job.spec.success.checkpoint)


def _succeeded(job: Job, evidence: Evidence) -> bool:
    """Let declared evidence decide, whatever the exit; without any, clean exits."""
    if _clean(job, evidence):
        return satisfied(job, _with_resumed(job, evidence))
    target = job.spec.success.step
    return bool(target) and not job.cancel and satisfied(job, evidence)


def _success(job: Job, evidence: Evidence) -> Succeeded:
    clean = _clean(job, evidence)
    proven = _with_resumed(job, evidence) if clean else evidence
    named = ["all ranks exited 0"] if clean else []
    if _declared(job):
        named.append(f"checkpoint of step {proven.verified_step} verified")
    return Succeeded(
        attempt=job.attempt,
        step=proven.verified_step,
        evidence=tuple(named),
        unreclaimed=job.owes_proof(),
    )


def _last_look(
    job: Job, evidence: Evidence, now: Moment, patience: Patience
) -> WaitFor | None:
    """Wait, for a while, until what an attempt saved was looked at for the last time.

    A choice is made on that look. Nobody looks while somebody may still write.
    """
    looked = job.chosen is not None or evidence.looked >= job.attempt
    if looked or not job.spec.checkpoint.directory or job.owes_proof():
        return None
    since = max(job.since, evidence.quiet_at or job.since)
    if now.overdue(since, patience.evidence_seconds):
        return None
    until = now.deadline(since, patience.evidence_seconds)
    return WaitFor(what="a last look at its checkpoints", until=until)


def _exited_early(job: Job, evidence: Evidence) -> Failed:
    wanted = job.spec.success.step
    what = f"a verified checkpoint of step {wanted}" if wanted else "a checkpoint"
    earlier = evidence.earlier_step
    beside = f"; that of step {earlier} was there before the job" if earlier else ""
    return Failed(
        attempt=job.attempt,
        cause=Cause.EXITED_EARLY,
        reason=f"all ranks exited 0 without {what}; newest is step "
        f"{evidence.verified_step}{beside}",
        unreclaimed=job.owes_proof(),
    )


def _over(job: Job, evidence: Evidence) -> str:
    """Say why there is no other attempt, "" when there is one."""
    ended = job.ended
    if ended is None or ended.cause in _HOPELESS:
        return ended.reason if ended else "nothing ran"
    progressed = evidence.verified_step > job.step
    if ended.cause in _FREE or (ended.cause is Cause.TIME_LIMIT and progressed):
        return ""
    used = 0 if progressed else job.retries_used
    if used < job.spec.retries_max:
        return ""
    return f"{ended.reason}; retries used {used} of {job.spec.retries_max}"


def _again_or_over(
    job: Job, evidence: Evidence, now: Moment
) -> Requeued | Failed | WaitFor:
    ended, owed = job.ended, job.owes_proof()
    why_not = _over(job, evidence)
    if why_not or ended is None:
        cause = ended.cause if ended else Cause.UNSPECIFIED
        return Failed(
            attempt=job.attempt, cause=cause, reason=why_not, unreclaimed=owed
        )
    if owed:
        return Failed(
            attempt=job.attempt,
            cause=ended.cause,
            reason=f"{ended.reason}; no proof that {', '.join(owed)} stopped, so it "
            "cannot be started again elsewhere",
            unreclaimed=owed,
        )
    if job.spec.checkpoint.directory and job.chosen is None:
        return WaitFor(what="a restore point")
    progressed = evidence.verified_step > job.step
    free = ended.cause in _FREE or (ended.cause is Cause.TIME_LIMIT and progressed)
    rounds = 0 if progressed or free else job.attempts_without_progress
    wait = _backoff_seconds(job, rounds)
    return Requeued(
        attempt=job.attempt,
        cause=ended.cause,
        reason=ended.reason,
        charged=not free,
        progressed=progressed,
        step=max(evidence.verified_step, job.step),
        not_before=now.at + timedelta(seconds=wait) if wait else None,
        avoid=(ended.node,) if ended.node and ended.cause in _BLAMED_ON_NODE else (),
    )


def _backoff_seconds(job: Job, rounds: int) -> float:
    """Wait nothing at first, then twice as long each time, spread by up to a half.

    The spread follows from the job and the attempt, so that deciding again says the
    same.
    """
    if rounds == 0:
        return 0.0
    longer = _BACKOFF_FIRST_SECONDS * float(2 ** (rounds - 1))
    base = min(longer, _BACKOFF_MOST_SECONDS)
    seed = hashlib.sha256(f"{job.key.job}:{job.attempt}".encode()).digest()[0]
    return base * (1 + seed / 512)
