"""Owns submission's rows: the projection of the log, and the truth about keys.

A key is claimed before its job is on the log, and waits for the disk. Claims that come
together are written together, so that many callers share one wait.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Final

from trainmaster.core.errors import UnreachableError
from trainmaster.core.ids import JobId, NodeKey, PoolKey, TeamKey, TokenKey
from trainmaster.core.nodes import Node
from trainmaster.core.teams import Pool, Team
from trainmaster.core.tokens import Token
from trainmaster.runtime.database import Database
from trainmaster.runtime.tables import Collection, Tables, jobs_of
from trainmaster.runtime.truth import Truth
from trainmaster.submission.ports import Claim, Claimed
from trainmaster.submission.state import State
from trainmaster.submission.together import Together

_PACKAGE: Final = "trainmaster.submission"
_SCHEMA: Final = "submission_truth"
_SECONDS: Final = 5.0
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
        version=2,
        empty=State,
        collections=(
            jobs_of(lambda state: state.jobs),
            Collection(
                "team",
                key=TeamKey,
                value=Team,
                of=lambda state: state.teams,
            ),
            Collection(
                "pool",
                key=PoolKey,
                value=Pool,
                of=lambda state: state.pools,
            ),
            Collection(
                "node",
                key=NodeKey,
                value=Node,
                of=lambda state: state.nodes,
            ),
            Collection(
                "token",
                key=TokenKey,
                value=Token,
                of=lambda state: state.tokens,
            ),
        ),
    )


class Keys:
    """The book of idempotency keys, in PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._truth = Truth(
            database=database,
            schema=_SCHEMA,
            package=_PACKAGE,
            hint="repeat the request with the same Idempotency-Key",
            seconds=_SECONDS,
        )
        self._claims = Together(self._claim, what=f"PostgreSQL at {database.address}")

    async def open_early(self) -> None:
        """Make the tables before the first request needs them, then rest."""
        with contextlib.suppress(UnreachableError):  # then that request makes them
            await self._truth.fetch("select 1")
        await asyncio.Event().wait()

    async def claim(self, claim: Claim) -> Claimed:
        """Write a claim down unless its key is taken; returns what stands there."""
        return await self._claims.ask(claim)

    async def release(self, key: str, job: JobId) -> None:
        """Forget a claim whose job was refused."""
        await self._truth.fetch(_RELEASE, key, job)

    async def _claim(self, claims: Sequence[Claim]) -> Sequence[Claimed]:
        first: dict[str, Claim] = {}
        for claim in claims:
            first.setdefault(claim.key, claim)
        rows = [(c.key, c.digest, c.team, c.job) for _, c in sorted(first.items())]
        found = {
            key: Claimed(digest=digest, job=JobId(job), age=age)
            for key, digest, job, age in await self._truth.fetch(
                _CLAIM, *map(list, zip(*rows, strict=True))
            )
        }
        return [found[claim.key] for claim in claims]
