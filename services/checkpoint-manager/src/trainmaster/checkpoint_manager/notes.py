"""Decides what is remarked about a job's checkpoints, each thing once. Pure."""

from collections.abc import Iterable, Iterator
from functools import reduce

from trainmaster.checkpoint_manager.settings import CHECKPOINTS_MAX
from trainmaster.checkpoint_manager.state import Catalogue
from trainmaster.checkpoint_manager.wants import CHOOSING, Blind, Phase, Scanned, is_own
from trainmaster.core.decision import Write
from trainmaster.core.messages import ScannedCheckpoint
from trainmaster.core.notes import (
    CheckpointRejected,
    CheckpointsScanned,
    CheckpointVerified,
)
from trainmaster.core.record import Job, JobState
from trainmaster.core.verdict import Evidence, informed


def notes(job: Job, catalogue: Catalogue, scan: Scanned) -> Iterator[Write]:
    """Remark what is newly whole, and what is torn now that nobody writes."""
    for checkpoint in newly_whole(catalogue, scan.own):
        yield _verified(job, catalogue, checkpoint)
    torn = _torn(job, scan)
    moved = {each.path: each.moved_to for each in scan.moved}
    for checkpoint in torn:
        if not _said(job, catalogue, checkpoint):
            yield _rejected(job, catalogue, checkpoint, moved.get(checkpoint.path, ""))
    if is_last_look(job, scan) and catalogue.evidence.looked < job.attempt:
        yield _scanned(job, scan)


def blindness(job: Job, catalogue: Catalogue, finding: Blind) -> Iterator[Write]:
    """Remark once in an attempt that nobody can look, so that it shows why it waits."""
    nothing = ScannedCheckpoint(path=finding.place, problem=finding.reason)
    seen = catalogue.by_path.get(finding.place)
    if seen is None or seen.attempt != job.attempt:
        yield _rejected(job, catalogue, nothing, "")


def newly_whole(
    catalogue: Catalogue, checkpoints: Iterable[ScannedCheckpoint]
) -> list[ScannedCheckpoint]:
    """List whole checkpoints that the catalogue does not hold as they are now."""
    return [c for c in highest(checkpoints) if is_whole(c) and catalogue.is_news(c)]


def evidence_with(job: Job, catalogue: Catalogue, scan: Scanned) -> Evidence:
    """Add to the evidence what the scan found, as its notes will."""
    said = (write.event for write in notes(job, catalogue, scan))
    return reduce(informed, said, catalogue.evidence)


def is_last_look(job: Job, scan: Scanned) -> bool:
    """Tell whether the scan began after the last node of the attempt gave proof."""
    over = job.state is JobState.SETTLING and not job.owes_proof()
    return over and scan.phase is Phase.FINAL


def is_whole(checkpoint: ScannedCheckpoint) -> bool:
    """Tell a whole checkpoint from one that is not."""
    return not checkpoint.problem


def step_and_path(checkpoint: ScannedCheckpoint) -> tuple[int, str]:
    """Order checkpoints; the path decides between equal steps."""
    return checkpoint.step, checkpoint.path


def highest(checkpoints: Iterable[ScannedCheckpoint]) -> list[ScannedCheckpoint]:
    """Keep a bounded number, those of highest step, in ascending order."""
    return sorted(checkpoints, key=step_and_path)[-CHECKPOINTS_MAX:]


def _torn(job: Job, scan: Scanned) -> list[ScannedCheckpoint]:
    """List what is worth a word; while somebody writes, a torn one is normal."""
    if scan.phase is Phase.RESUME and not is_own(job):
        return _unusable(job, scan)
    if scan.phase in CHOOSING:
        return [c for c in highest(scan.own) if not is_whole(c)]
    return []


def _unusable(job: Job, scan: Scanned) -> list[ScannedCheckpoint]:
    """Say why a job cannot begin where it should; nothing when it can."""
    if any(map(is_whole, scan.origin)):
        return []
    origin = job.spec.checkpoint.resume_from
    nothing = ScannedCheckpoint(path=origin, problem="there is no checkpoint")
    return highest(scan.origin) or [nothing]


def _said(job: Job, catalogue: Catalogue, checkpoint: ScannedCheckpoint) -> bool:
    seen = catalogue.by_path.get(checkpoint.path)
    return (
        seen is not None
        and not seen.whole
        and (seen.attempt, seen.reason) == (job.attempt, checkpoint.problem)
    )


def _scanned(job: Job, scan: Scanned) -> Write:
    whole = [c.step for c in scan.own if is_whole(c)]
    note = CheckpointsScanned(
        attempt=job.attempt, whole=len(whole), step=max(whole, default=0)
    )
    return Write(key=job.key, event=note, cause=str(job.attempt))


def _verified(job: Job, catalogue: Catalogue, found: ScannedCheckpoint) -> Write:
    note = CheckpointVerified(
        attempt=0 if catalogue.is_earlier(found) else job.attempt,
        path=found.path,
        step=found.step,
        format=found.format,
        files=found.files,
        bytes=found.bytes,
        digest=found.digest,
    )
    return Write(key=job.key, event=note, cause=_cause(job, catalogue, found))


def _rejected(
    job: Job, catalogue: Catalogue, found: ScannedCheckpoint, moved_to: str
) -> Write:
    note = CheckpointRejected(
        attempt=job.attempt,
        path=found.path,
        step=found.step,
        reason=found.problem,
        moved_to=moved_to,
    )
    return Write(key=job.key, event=note, cause=_cause(job, catalogue, found))


def _cause(job: Job, catalogue: Catalogue, found: ScannedCheckpoint) -> str:
    """Give one remark one id, and another id when it becomes true again later.

    A deterministic training writes a path anew with the same content after it was
    torn. If only path and digest counted, the log would drop that as a repetition.
    """
    seen = catalogue.by_path.get(found.path)
    times = seen.said if seen else 0
    return f"{found.path}\n{found.digest}\n{job.attempt}\n{times}"
