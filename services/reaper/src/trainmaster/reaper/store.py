"""Rows of the reaper's state, and its archive of the log."""

from collections.abc import Sequence
from typing import Final

from trainmaster.core.envelope import Raw
from trainmaster.core.ids import JobKey, MemberKey, NodeKey
from trainmaster.core.values import Proof
from trainmaster.core.verdict import Evidence
from trainmaster.reaper.state import MemberExits, NodeSeen, State
from trainmaster.runtime.database import Database
from trainmaster.runtime.tables import Collection, Tables, jobs_of
from trainmaster.runtime.truth import Truth

_SCHEMA: Final = "reaper_truth"
_PACKAGE: Final = "trainmaster.reaper"
_INSERT: Final = """
insert into reaper_truth.archive (epoch, seq, stored_at, job, subject, id, body)
select $1, * from unnest($2::bigint[], $3::timestamptz[], $4::text[], $5::text[],
                         $6::text[], $7::bytea[])
on conflict (epoch, seq) do nothing
"""


def tables() -> Tables[State]:
    """Describe the rows."""
    return Tables(
        service="reaper",
        version=1,
        empty=State,
        collections=(
            jobs_of(lambda s: s.jobs),
            Collection("proof", key=MemberKey, value=Proof, of=_proofs),
            Collection("exits", key=MemberKey, value=MemberExits, of=_exits),
            Collection("node", key=NodeKey, value=NodeSeen, of=_nodes),
            Collection("evidence", key=JobKey, value=Evidence, of=_evidence),
        ),
    )


def _proofs(state: State) -> dict[MemberKey, Proof]:
    return state.proofs


def _exits(state: State) -> dict[MemberKey, MemberExits]:
    return state.exits


def _nodes(state: State) -> dict[NodeKey, NodeSeen]:
    return state.nodes


def _evidence(state: State) -> dict[JobKey, Evidence]:
    return state.evidence


class Archive:
    """The logs of jobs that are over, for good. May raise UnreachableError."""

    def __init__(self, database: Database, *, epoch: int) -> None:
        self._epoch = epoch
        self._truth = Truth(
            database=database,
            schema=_SCHEMA,
            package=_PACKAGE,
            hint="jobs are archived when it is back",
        )

    async def keep(self, entries: Sequence[Raw]) -> None:
        """Keep a part of the log; doing it again changes nothing."""
        await self._truth.fetch(
            _INSERT,
            self._epoch,
            [raw.seq for raw in entries],
            [raw.time for raw in entries],
            [raw.subject.split(".")[3] for raw in entries],
            [raw.subject for raw in entries],
            [raw.id for raw in entries],
            [raw.body for raw in entries],
        )
