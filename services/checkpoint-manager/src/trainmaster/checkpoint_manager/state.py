"""What the checkpoint-manager remembers: jobs, nodes, which checkpoints are whole."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from trainmaster.checkpoint_manager.settings import CHECKPOINTS_MAX
from trainmaster.core.decision import Changed
from trainmaster.core.envelope import Entry
from trainmaster.core.events import AttemptPlaced, Event
from trainmaster.core.facts import NodeLost, NodeRegistered
from trainmaster.core.ids import JobKey, NodeKey
from trainmaster.core.jobs import Jobs
from trainmaster.core.messages import ScannedCheckpoint
from trainmaster.core.notes import (
    CheckpointRejected,
    CheckpointsScanned,
    CheckpointVerified,
    Note,
)
from trainmaster.core.record import Job
from trainmaster.core.verdict import Evidence, informed


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """What was last said of one path; `said` counts how often, whole or torn.

    Attempt 0 did not save it: it was there before the job's first one.
    """

    step: int
    whole: bool
    at: datetime
    attempt: int
    digest: str = ""
    reason: str = ""
    said: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """The checkpoints of one job by path, and the evidence they once gave.

    A checkpoint that is torn later does not take evidence back: the reaper reads the
    same notes and counts alike. Before `placed_at` no attempt can have saved anything.
    """

    by_path: Mapping[str, Checkpoint] = field(default_factory=dict[str, Checkpoint])
    evidence: Evidence = field(default_factory=Evidence)
    placed_at: datetime | None = None

    def known(self) -> dict[str, str]:
        """List the digests of whole checkpoints by path."""
        return {path: seen.digest for path, seen in self.by_path.items() if seen.whole}

    def is_earlier(self, found: ScannedCheckpoint) -> bool:
        """Tell whether a checkpoint was there before the job's first attempt."""
        if self.placed_at is None or found.saved_at is None:
            return self.placed_at is None
        return found.saved_at < self.placed_at

    def is_news(self, found: ScannedCheckpoint) -> bool:
        """Tell whether a whole checkpoint is not in here as it is now.

        Equal content counts too once an attempt has saved it anew: trainings repeat.
        """
        seen = self.by_path.get(found.path)
        if seen is None or not seen.whole or seen.digest != found.digest:
            return True
        saved_anew = found.saved_at is not None and not self.is_earlier(found)
        return not seen.attempt and saved_anew


EMPTY: Final = Catalogue()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSeen:
    """Whether a node's agent is silent, so that it cannot be asked."""

    lost: bool = False


@dataclass(slots=True)
class State:
    """Everything the checkpoint-manager decides on."""

    jobs: Jobs = field(default_factory=Jobs)
    nodes: dict[NodeKey, NodeSeen] = field(default_factory=dict[NodeKey, NodeSeen])
    catalogues: dict[JobKey, Catalogue] = field(default_factory=dict[JobKey, Catalogue])


def fold(state: State, entry: Entry) -> Iterable[Changed]:
    """Take one event in and name the rows it touched."""
    match entry.key, entry.event:
        case NodeKey() as key, NodeRegistered() | NodeLost() as event:
            state.nodes[key] = NodeSeen(lost=isinstance(event, NodeLost))
            return (("node", key),)
        case JobKey() as key, CheckpointVerified() | CheckpointRejected() as note:
            return _noted(state, key, note, entry.time)
        case JobKey() as key, CheckpointsScanned() as note:
            return _added(state, key, note)
        case _:
            return _moved(state, entry)


def _noted(
    state: State,
    key: JobKey,
    note: CheckpointVerified | CheckpointRejected,
    at: datetime,
) -> Iterable[Changed]:
    if key not in state.jobs:  # a late note about an archived job
        return ()
    catalogue = state.catalogues.get(key, EMPTY)
    before = catalogue.by_path.get(note.path)
    seen = Checkpoint(
        step=note.step,
        whole=isinstance(note, CheckpointVerified),
        at=at,
        attempt=note.attempt,
        digest=note.digest if isinstance(note, CheckpointVerified) else "",
        reason=note.reason if isinstance(note, CheckpointRejected) else "",
        said=before.said + 1 if before else 1,
    )
    by_path = _newest({**catalogue.by_path, note.path: seen})
    state.catalogues[key] = replace(catalogue, by_path=by_path)
    return _added(state, key, note)


def _added(state: State, key: JobKey, note: Note) -> Iterable[Changed]:
    if key not in state.jobs:
        return ()
    catalogue = state.catalogues.get(key, EMPTY)
    evidence = informed(catalogue.evidence, note)
    state.catalogues[key] = replace(catalogue, evidence=evidence)
    return (("catalogue", key),)


def _newest(by_path: dict[str, Checkpoint]) -> dict[str, Checkpoint]:
    if len(by_path) <= CHECKPOINTS_MAX:
        return by_path
    in_order = sorted(by_path.items(), key=lambda item: (item[1].step, item[0]))
    return dict(in_order[-CHECKPOINTS_MAX:])


def _moved(state: State, entry: Entry) -> Iterable[Changed]:
    outcome = state.jobs.fold(entry)
    if not isinstance(outcome, Job):
        return
    key = outcome.key
    yield "job", key
    if outcome.archived:
        if state.catalogues.pop(key, None) is not None:
            yield "catalogue", key
    elif _is_first(entry.event) and outcome.spec.checkpoint.directory:
        catalogue = state.catalogues.get(key, EMPTY)
        state.catalogues[key] = replace(catalogue, placed_at=entry.time)
        yield "catalogue", key


def _is_first(event: Event) -> bool:
    return isinstance(event, AttemptPlaced) and event.attempt == 1
