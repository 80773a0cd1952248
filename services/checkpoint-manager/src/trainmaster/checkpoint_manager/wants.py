"""Decides which jobs should be looked at now, where, by which nodes. Pure.

A job that runs is watched. When its attempt is over it is looked at at once, while its
nodes still close, so that what is new is hashed by the time the last of them has given
proof. Only the scan after that counts for a choice: before it somebody may still write.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from pathlib import PurePosixPath
from typing import Final

from trainmaster.checkpoint_manager.settings import NODES_TRIED_MAX
from trainmaster.checkpoint_manager.state import EMPTY, Catalogue, NodeSeen, State
from trainmaster.core.ids import JobKey, NodeKey
from trainmaster.core.messages import ScannedCheckpoint
from trainmaster.core.record import Job, JobState
from trainmaster.core.values import Rejected


class Phase(StrEnum):
    """Why a job is looked at."""

    WATCH = "watch"  # it runs and saves from time to time
    CLOSING = "closing"  # the attempt is over, nodes are still to give proof
    FINAL = "final"  # nobody writes any more
    RESUME = "resume"  # it has not run yet and wants to begin at a checkpoint


URGENT: Final = frozenset({Phase.CLOSING, Phase.FINAL, Phase.RESUME})
"""Phases in which somebody waits for the answer."""
CHOOSING: Final = frozenset({Phase.FINAL, Phase.RESUME})
"""Phases in which the job waits for a restore point."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
    """One job to look at; `nodes` are asked in this order until one answers."""

    job: Job
    phase: Phase
    nodes: tuple[NodeKey, ...]
    catalogue: Catalogue

    @property
    def place(self) -> str:
        """Where the scan begins."""
        checkpoint = self.job.spec.checkpoint
        if self.phase is Phase.RESUME and not is_own(self.job):
            return checkpoint.resume_from
        return checkpoint.directory

    @property
    def identity(self) -> object:
        """Tell another question from the same one: who is asked matters in a hurry."""
        nodes = self.nodes if self.phase in URGENT else ()
        return self.job.attempt, self.phase, nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanned:
    """What a node found: a fact for the policy.

    `own` lies in the job's directory, `origin` where the job should resume from;
    `moved` was torn and is out of the framework's sight now.
    """

    key: JobKey
    attempt: int
    phase: Phase
    node: str = ""
    own: tuple[ScannedCheckpoint, ...] = ()
    origin: tuple[ScannedCheckpoint, ...] = ()
    moved: tuple[Rejected, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Blind:
    """No node could look, again and again: a fact for the policy."""

    key: JobKey
    attempt: int
    place: str
    reason: str


Finding = Scanned | Blind


def wanted(state: State, key: JobKey) -> Want | None:
    """Say whether and why a job should be looked at."""
    job = state.jobs.get(key)
    phase = None if job is None else _phase(job)
    if job is None or phase is None:
        return None
    return Want(
        job=job,
        phase=phase,
        nodes=tuple(islice(_askable(state, job), NODES_TRIED_MAX)),
        catalogue=state.catalogues.get(key, EMPTY),
    )


def is_own(job: Job) -> bool:
    """Tell whether a job resumes from its own directory."""
    directory, origin = job.spec.checkpoint.directory, job.spec.checkpoint.resume_from
    return bool(directory) and _is_below(origin, directory)


def lies_at(checkpoint: ScannedCheckpoint, place: str) -> bool:
    """Tell whether a checkpoint is this path, or lies below it."""
    return _is_below(checkpoint.path, place)


def _is_below(path: str, place: str) -> bool:
    return PurePosixPath(path).is_relative_to(PurePosixPath(place))


def _phase(job: Job) -> Phase | None:
    checkpoint = job.spec.checkpoint
    if job.state is JobState.QUEUED:
        first = not job.attempt and job.chosen is None and checkpoint.resume_from
        return Phase.RESUME if first else None
    if not checkpoint.directory or not job.attempt:
        return None
    match job.state:
        case JobState.RUNNING | JobState.STOPPING:
            return Phase.WATCH
        case JobState.SETTLING if job.owes_proof():
            return Phase.CLOSING
        case JobState.SETTLING if job.chosen is None:
            return Phase.FINAL
        case _:
            return None


def _askable(state: State, job: Job) -> Iterator[NodeKey]:
    """Name the job's own nodes, then the others of its pool; never a silent one."""
    members = [NodeKey(job.pool, name) for name in job.nodes]
    others = (n for n in state.nodes if n.pool == job.pool and n not in members)
    for node in (*members, *others):
        if not state.nodes.get(node, NodeSeen()).lost:
            yield node
