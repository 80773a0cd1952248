"""What users ask for and what their trainings leave on disk, made up by chance."""

import random
from datetime import datetime, timedelta

from trainmaster.core.ids import JobId, JobKey
from trainmaster.core.messages import ScannedCheckpoint
from trainmaster.core.spec import CheckpointSpec, JobSpec, SuccessSpec
from trainmaster.testkit.simagent import SimAgent


def a_wish(key: JobKey, chance: random.Random) -> JobSpec:
    """Make up what a user may ask for."""
    saves = chance.random() < 0.6
    return JobSpec(
        name="sim",
        command=("train",),
        nodes=chance.choice((1, 1, 2, 3)),
        accelerators_per_node=chance.choice((0, 1, 2)),
        ranks_per_node=chance.choice((1, 2)),
        retries_max=chance.choice((0, 1, 3)),
        priority=chance.choice((0, 100)),
        hold=chance.random() < 0.1,
        time_limit_seconds=chance.choice((0, 0, 5)),
        checkpoint=CheckpointSpec(directory=f"/ckpt/{key.job}" if saves else ""),
        success=SuccessSpec(step=chance.choice((0, 3)) if saves else 0),
    )


def leave_some(
    wish: JobSpec, chance: random.Random, now: datetime
) -> list[ScannedCheckpoint]:
    """Sometimes an older run has left what a job wants to reach."""
    directory = wish.checkpoint.directory
    if not directory or chance.random() < 0.5:
        return []
    older = now - timedelta(hours=1)
    return [_saved(f"{directory}/step-3", 3, older, problem="")]


def _saved(path: str, step: int, at: datetime, *, problem: str) -> ScannedCheckpoint:
    return ScannedCheckpoint(
        path=path,
        step=step,
        format="plain",
        digest=f"d{step}",
        problem=problem,
        saved_at=at,
    )


def save_some(
    agent: SimAgent,
    disks: dict[JobId, list[ScannedCheckpoint]],
    chance: random.Random,
    *,
    torn_share: float,
    now: datetime,
) -> None:
    """Let jobs that run save one more step now and then, sometimes torn."""
    for (job, _), part in agent.parts.items():
        alive = any(e is None for e in part.ranks.values()) and not part.closed
        if not alive or chance.random() < 0.5:
            continue
        saved = disks.setdefault(job, [])
        step = max((c.step for c in saved), default=0) + 1
        torn = "it is torn" if chance.random() < torn_share else ""
        saved.append(_saved(f"/ckpt/{job}/step-{step}", step, now, problem=torn))
