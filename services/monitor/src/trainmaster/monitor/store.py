"""Owns the monitor's rows: the projection of the log, and the truth about metrics."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import asyncpg

from trainmaster.core.ids import JobId, JobKey, NodeKey
from trainmaster.core.messages import Progress
from trainmaster.core.nodes import Node
from trainmaster.monitor.history import Row, RowsRefusedError
from trainmaster.monitor.state import Ends, Raised, Reported, State
from trainmaster.runtime.database import Database
from trainmaster.runtime.tables import Collection, Tables, jobs_of
from trainmaster.runtime.truth import Truth

_PACKAGE: Final = "trainmaster.monitor"
_SCHEMA: Final = "monitor_truth"
# A rank that was restarted inside an attempt says a step again: the last word holds.
_SAVE_METRICS: Final = """
insert into monitor_truth.metric (job, attempt, rank, step, name, value, at)
select * from unnest($1::text[], $2::int[], $3::int[], $4::int[], $5::text[],
                     $6::double precision[], $7::timestamptz[])
on conflict (job, attempt, name, rank, step)
do update set value = excluded.value, at = excluded.at
"""
_SAVE_PROGRESS: Final = """
insert into monitor_truth.progress (team, job, attempt, step, loss, at)
select * from unnest($1::text[], $2::text[], $3::int[], $4::int[],
                     $5::double precision[], $6::timestamptz[])
on conflict (team, job) do update set attempt = excluded.attempt,
    step = excluded.step, loss = excluded.loss, at = excluded.at
"""
_FORGET: Final = """
delete from monitor_truth.progress p
using unnest($1::text[], $2::text[]) as g(team, job)
where p.team = g.team and p.job = g.job
"""
_PROGRESS: Final = (
    "select team, job, attempt, step, loss, at from monitor_truth.progress order by at"
)
_HISTORY: Final = """
select attempt, rank, step, name, value, at from monitor_truth.metric
where job = $1 order by attempt, step, rank, name limit $2
"""


def tables() -> Tables[State]:
    """Describe the rows."""
    return Tables(
        service="monitor",
        version=2,
        empty=State,
        collections=(
            jobs_of(lambda s: s.jobs),
            Collection("node", key=NodeKey, value=Node, of=_nodes),
            Collection("ends", key=JobKey, value=Ends, of=_ends),
            Collection("nan", key=JobKey, value=Raised, of=_nans),
            Collection("reported", key=JobKey, value=Reported, of=_reported),
        ),
    )


def _nodes(state: State) -> dict[NodeKey, Node]:
    return state.nodes


def _ends(state: State) -> dict[JobKey, Ends]:
    return state.ends


def _nans(state: State) -> dict[JobKey, Raised]:
    return state.nans


def _reported(state: State) -> dict[JobKey, Reported]:
    return state.reported


class MetricStore:
    """Metrics and progress, in PostgreSQL. Every call may raise UnreachableError."""

    def __init__(self, database: Database) -> None:
        self._truth = Truth(
            database=database,
            schema=_SCHEMA,
            package=_PACKAGE,
            hint="metrics are kept in memory and written when it is back",
        )

    async def save_metrics(self, rows: Sequence[Row]) -> None:
        """Write metrics; a step that was said before is overwritten."""
        try:
            await self._truth.fetch(_SAVE_METRICS, *map(list, zip(*rows, strict=True)))
        except asyncpg.DataError as error:
            raise RowsRefusedError(count=len(rows), problem=str(error)) from error

    async def save_progress(self, progress: Mapping[JobKey, Progress]) -> None:
        """Write how far jobs are."""
        rows = [
            (*key, seen.attempt, seen.step, seen.loss, seen.at)
            for key, seen in progress.items()
        ]
        await self._truth.fetch(_SAVE_PROGRESS, *map(list, zip(*rows, strict=True)))

    async def forget(self, keys: Iterable[JobKey]) -> None:
        """Drop the progress of jobs; their metrics stay."""
        await self._truth.fetch(_FORGET, *map(list, zip(*keys, strict=True)))

    async def progress(self) -> Mapping[JobKey, Progress]:
        """Read how far all jobs were when they were last heard."""
        return {
            JobKey(row["team"], JobId(row["job"])): Progress(
                attempt=row["attempt"],
                step=row["step"],
                loss=row["loss"],
                at=row["at"],
            )
            for row in await self._truth.fetch(_PROGRESS)
        }

    async def history(self, job: JobId, *, most: int) -> Sequence[Row]:
        """Read a job's metrics, oldest first."""
        rows = await self._truth.fetch(_HISTORY, job, most)
        return [Row(job, *row) for row in rows]
