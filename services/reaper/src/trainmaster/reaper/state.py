"""What the reaper remembers: jobs, proofs offered, nodes, verified checkpoints."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime

from trainmaster.core.decision import Changed
from trainmaster.core.envelope import Entry
from trainmaster.core.events import AttemptReclaimed
from trainmaster.core.facts import MemberClosed, NodeLost, NodeRegistered, RankExited
from trainmaster.core.ids import JobKey, MemberKey, NodeKey
from trainmaster.core.jobs import Jobs
from trainmaster.core.model import Message
from trainmaster.core.notes import Note
from trainmaster.core.record import Job, JobState
from trainmaster.core.values import Proof
from trainmaster.core.verdict import Evidence, informed


class NodeSeen(Message):
    """What is known of a node: since when its agent is silent, if it is."""

    lost: bool = False
    lost_at: datetime | None = None


class MemberExits(Message):
    """Which ranks of a member were seen to end, and whether all of them cleanly."""

    ranks: tuple[int, ...] = ()
    clean: bool = True


@dataclass(slots=True)
class State:
    """Everything the reaper decides on."""

    jobs: Jobs = field(default_factory=Jobs)
    proofs: dict[MemberKey, Proof] = field(default_factory=dict[MemberKey, Proof])
    exits: dict[MemberKey, MemberExits] = field(
        default_factory=dict[MemberKey, MemberExits]
    )
    nodes: dict[NodeKey, NodeSeen] = field(default_factory=dict[NodeKey, NodeSeen])
    evidence: dict[JobKey, Evidence] = field(default_factory=dict[JobKey, Evidence])

    def evidence_of(self, job: Job) -> Evidence:
        """Say what was verified of a job, and whether its ranks all ended well."""
        known = self.evidence.get(job.key, Evidence())
        return replace(known, all_exited_clean=self._all_exited_clean(job))

    def _all_exited_clean(self, job: Job) -> bool:
        seen = [
            (self.exits.get(MemberKey(job.pool, m.node, job.key.job, job.attempt)), m)
            for m in job.members
        ]
        return bool(seen) and all(
            exits is not None and exits.clean and len(exits.ranks) >= member.ranks
            for exits, member in seen
        )


def fold(state: State, entry: Entry) -> Iterable[Changed]:
    """Take one event in and name the rows it touched."""
    match entry.event:
        case MemberClosed(proof=proof):
            return _closed(state, entry.key, proof)
        case RankExited(exit=exit_) if isinstance(entry.key, MemberKey):
            known = state.exits.get(entry.key, MemberExits())
            state.exits[entry.key] = MemberExits(
                ranks=tuple(sorted({*known.ranks, exit_.rank})),
                clean=known.clean and exit_.clean,
            )
            return (("exits", entry.key),)
        case NodeRegistered() if isinstance(entry.key, NodeKey):
            state.nodes[entry.key] = NodeSeen()
            return (("node", entry.key),)
        case NodeLost() if isinstance(entry.key, NodeKey):
            state.nodes[entry.key] = NodeSeen(lost=True, lost_at=entry.time)
            return (("node", entry.key),)
        case Note() as note if isinstance(entry.key, JobKey):
            before = state.evidence.get(entry.key, Evidence())
            return _informed(state, entry.key, informed(before, note))
        case _:
            return _moved(state, entry)


def _closed(state: State, key: object, proof: Proof) -> Iterable[Changed]:
    if not isinstance(key, MemberKey):
        return ()
    # A report for an unknown job is kept: MEMBERS may be read ahead of JOBS.
    if key in state.proofs:
        return ()
    state.proofs[key] = proof
    return (("proof", key),)


def _informed(state: State, key: JobKey, evidence: Evidence) -> Iterable[Changed]:
    # A late note about an archived job would never be forgotten.
    if key not in state.jobs or evidence == state.evidence.get(key, Evidence()):
        return ()
    state.evidence[key] = evidence
    return (("evidence", key),)


def _moved(state: State, entry: Entry) -> Iterable[Changed]:
    outcome = state.jobs.fold(entry)
    if not isinstance(outcome, Job):
        return
    yield "job", outcome.key
    if outcome.archived:
        yield from _forget(state, outcome.key)
    elif isinstance(entry.event, AttemptReclaimed) and _is_quiet(outcome):
        known = state.evidence.get(outcome.key, Evidence())
        quiet = replace(known, quiet_at=entry.time)
        yield from _informed(state, outcome.key, quiet)


def _is_quiet(job: Job) -> bool:
    """Tell whether nobody is left who could write."""
    return job.state is JobState.SETTLING and not job.owes_proof()


def _forget(state: State, key: JobKey) -> Iterable[Changed]:
    if state.evidence.pop(key, None) is not None:
        yield "evidence", key
    for name, rows in (("proof", state.proofs), ("exits", state.exits)):
        for member in [m for m in rows if m.job == key.job]:
            del rows[member]
            yield name, member
