"""Decides which checkpoint an attempt begins at, and what must be out of its way. Pure.

Only what the scan itself found whole is chosen. What is torn or newer in the job's own
directory is set aside first, so that a framework that looks for itself finds the same.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from trainmaster.checkpoint_manager.notes import (
    evidence_with,
    highest,
    is_last_look,
    is_whole,
    step_and_path,
)
from trainmaster.checkpoint_manager.settings import REASONS_SHOWN_MAX
from trainmaster.checkpoint_manager.state import Catalogue
from trainmaster.checkpoint_manager.wants import Phase, Scanned, is_own, lies_at
from trainmaster.core.events import CheckpointChosen
from trainmaster.core.messages import ScannedCheckpoint
from trainmaster.core.record import Job, JobState
from trainmaster.core.values import Rejected, RestorePoint
from trainmaster.core.verdict import will_retry


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """The checkpoint to begin at, if any, and what stands in its way."""

    best: ScannedCheckpoint | None = None
    in_the_way: tuple[ScannedCheckpoint, ...] = ()


def pick(job: Job, catalogue: Catalogue, scan: Scanned) -> Pick | None:
    """Pick a restore point; None while there is none to pick."""
    if job.chosen is not None or job.attempt != scan.attempt:
        return None
    if scan.phase is Phase.RESUME:
        waits = job.state is JobState.QUEUED and not job.cancel
        return _pick_first(job, scan) if waits else None
    again = will_retry(job, evidence_with(job, catalogue, scan))
    return _pick_next(scan) if is_last_look(job, scan) and again else None


def chosen(
    job: Job, catalogue: Catalogue, scan: Scanned, now: datetime
) -> CheckpointChosen | None:
    """Say the choice, once everything in its way is gone."""
    picked = pick(job, catalogue, scan)
    moved = {each.path: each.moved_to for each in scan.moved}
    if picked is None or any(c.path not in moved for c in picked.in_the_way):
        return None
    best = picked.best
    return CheckpointChosen(
        attempt=job.attempt,
        restore=None
        if best is None
        else RestorePoint(path=best.path, step=best.step, digest=best.digest),
        rejected=tuple(
            Rejected(
                path=c.path, step=c.step, reason=_why_not(c), moved_to=moved[c.path]
            )
            for c in picked.in_the_way
        ),
        reason=_reason(job, picked, _verified_at(catalogue, best, now), moved),
    )


def _pick_first(job: Job, scan: Scanned) -> Pick | None:
    """Begin where the user said. What is nobody's but theirs must be there."""
    origin = job.spec.checkpoint.resume_from
    if is_own(job):
        best = _newest(c for c in scan.own if lies_at(c, origin))
        return Pick(best=best, in_the_way=_in_the_way(scan.own, best))
    best = _newest(scan.origin)
    return None if best is None else Pick(best=best)


def _pick_next(scan: Scanned) -> Pick:
    best = _newest(scan.own)
    in_the_way = _in_the_way(scan.own, best)
    return Pick(best=best or _newest(scan.origin), in_the_way=in_the_way)


def _newest(checkpoints: Iterable[ScannedCheckpoint]) -> ScannedCheckpoint | None:
    return max(filter(is_whole, checkpoints), key=step_and_path, default=None)


def _in_the_way(
    own: Iterable[ScannedCheckpoint], best: ScannedCheckpoint | None
) -> tuple[ScannedCheckpoint, ...]:
    return tuple(
        c for c in highest(own) if not is_whole(c) or best is None or c.step > best.step
    )


# --------------------------------------------------------------------------- in words


def _verified_at(
    catalogue: Catalogue, best: ScannedCheckpoint | None, now: datetime
) -> datetime:
    """Say when the checkpoint was first seen whole as it is now."""
    seen = catalogue.by_path.get(best.path) if best else None
    same = best and seen and seen.whole and seen.digest == best.digest
    return seen.at if seen and same else now


def _why_not(checkpoint: ScannedCheckpoint) -> str:
    return checkpoint.problem.rstrip(".") or "it is newer than the chosen one"


def _reason(job: Job, picked: Pick, at: datetime, moved: dict[str, str]) -> str:
    best = picked.best
    newer = [c for c in picked.in_the_way if best is None or c.step > best.step]
    sentences = [*_refusals(newer), _use(job, best, at, refused=bool(newer))]
    directory = job.spec.checkpoint.directory
    places = [_short(moved[c.path], directory) for c in newer if moved[c.path]]
    if places:
        sentences.append(f"Moved to {_listed(places)}.")
    return " ".join(sentences)


def _refusals(newer: list[ScannedCheckpoint]) -> list[str]:
    newest_first = newer[::-1]
    shown = newest_first[:REASONS_SHOWN_MAX]
    refusals = [f"step {c.step}: {_why_not(c)}" for c in shown]
    more = len(newer) - len(shown)
    if more:
        refusals.append(f"{more} more")
    return [f"Not resuming from {'; '.join(refusals)}."] if refusals else []


def _use(
    job: Job, best: ScannedCheckpoint | None, at: datetime, *, refused: bool
) -> str:
    if best is None:
        why = "No other checkpoint is whole" if refused else "No checkpoint was saved"
        return f"{why}: starting from the beginning."
    verb = "Using" if refused else "Resuming from"
    own = job.spec.checkpoint.directory
    where = "" if own and lies_at(best, own) else f" of {best.path}"
    return f"{verb} step {best.step}{where}, verified {at:%H:%M:%S}."


def _short(path: str, directory: str) -> str:
    return path.removeprefix(directory.rstrip("/") + "/")


def _listed(places: list[str]) -> str:
    shown, more = places[:REASONS_SHOWN_MAX], len(places) - REASONS_SHOWN_MAX
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
