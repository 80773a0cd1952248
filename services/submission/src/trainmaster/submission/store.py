"""Owns submission's rows: the projection of the log, and the truth about keys.

A key is claimed before its job is on the log, and waits for the disk. Claims that come
together are written together, so that many callers share one wait.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any, Final

import asyncpg

from trainmaster.core.errors import UnreachableError
from trainmaster.core.facts import PoolCreated, TeamCreated
from trainmaster.core.ids import JobId, PoolKey, TeamKey
from trainmaster.runtime.database import Database
from trainmaster.runtime.migrations import migrate, migrations_of
from trainmaster.runtime.tables import Collection, Tables, jobs_of
from trainmaster.submission.ports import Claim, Claimed
from trainmaster.submission.state import State
from trainmaster.submission.together import Together

_PACKAGE: Final = "trainmaster.submission"
_SCHEMA: Final = "submission_truth"
_SECONDS: Final = 5.0
_AWAY: Final = (
    OSError,
    TimeoutError,
    asyncpg.InsufficientResourcesError,
    asyncpg.InterfaceError,
    asyncpg.OperatorInterventionError,
    asyncpg.PostgresConnectionError,
)
"""What asyncpg raises while the server is gone, going or coming."""
_TABLE: Final = f"{_SCHEMA}.idempotency_key"
# The update changes nothing: it locks the row of whoever came first, and returns it.
_CLAIM: Final = f"""
insert into {_TABLE} (key, body_digest, team, job)
select * from unnest($1::text[], $2::text[], $3::text[], $4::text[])
on conflict (key) do update set key = excluded.key
returning key, body_digest, job, now() - created_at
"""  # noqa: S608 - the table's name is ours
_RELEASE: Final = f"delete from {_TABLE} where key = $1 and job = $2"  # noqa: S608 - as above


def tables() -> Tables[State]:
    """Say what of the state becomes rows."""
    return Tables(
        service="submission",
        version=1,
        empty=State,
        collections=(
            jobs_of(lambda state: state.jobs),
            Collection(
                "team",
                key=TeamKey,
                value=TeamCreated,
                of=lambda state: state.teams,
            ),
            Collection(
                "pool",
                key=PoolKey,
                value=PoolCreated,
                of=lambda state: state.pools,
            ),
        ),
    )


class Keys:
    """The book of idempotency keys, in PostgreSQL."""

    def __init__(self, database: Database, *, address: str) -> None:
        self._database = database
        self._address = address
        self._opening = asyncio.Lock()
        self._migrated = False
        self._claims = Together(self._claim, what=f"PostgreSQL at {address}")

    async def open_early(self) -> None:
        """Make the tables before the first request needs them, then rest."""
        with contextlib.suppress(UnreachableError):  # then that request makes them
            await self._fetch("select 1")
        await asyncio.Event().wait()

    async def claim(self, claim: Claim) -> Claimed:
        """Write a claim down unless its key is taken; returns what stands there."""
        return await self._claims.ask(claim)

    async def release(self, key: str, job: JobId) -> None:
        """Forget a claim whose job was refused."""
        await self._fetch(_RELEASE, key, job)

    async def _claim(self, claims: Sequence[Claim]) -> Sequence[Claimed]:
        first: dict[str, Claim] = {}
        for claim in claims:
            first.setdefault(claim.key, claim)
        rows = [(c.key, c.digest, c.team, c.job) for _, c in sorted(first.items())]
        found = {
            key: Claimed(digest=digest, job=JobId(job), age=age)
            for key, digest, job, age in await self._fetch(
                _CLAIM, *map(list, zip(*rows, strict=True))
            )
        }
        return [found[claim.key] for claim in claims]

    async def _fetch(self, query: str, *values: Any) -> Sequence[Any]:
        try:
            pool = await self._pool()
            return await pool.fetch(query, *values, timeout=_SECONDS)
        except _AWAY as error:
            raise UnreachableError(
                what="PostgreSQL",
                address=self._address,
                hint="repeat the request with the same Idempotency-Key",
            ) from error

    async def _pool(self) -> "asyncpg.Pool[asyncpg.Record]":
        async with self._opening:
            pool = await self._database.truth()
            if not self._migrated:
                await migrate(pool, schema=_SCHEMA, known=migrations_of(_PACKAGE))
                self._migrated = True
            return pool
