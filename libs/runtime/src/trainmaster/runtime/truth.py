"""Owns the way to a service's truth tables: what cannot be read again from the log.

They are made and brought up to date before the first query, whoever asks it.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import asyncpg

from trainmaster.core.errors import UnreachableError
from trainmaster.runtime.database import Database
from trainmaster.runtime.migrations import migrate, migrations_of

_AWAY: Final = (
    OSError,
    TimeoutError,
    asyncpg.InsufficientResourcesError,
    asyncpg.InterfaceError,
    asyncpg.OperatorInterventionError,
    asyncpg.PostgresConnectionError,
)
"""What asyncpg raises while the server is gone, going or coming."""


@dataclass(slots=True, kw_only=True)
class Truth:
    """One service's truth schema; `hint` says what to do while it is away.

    The numbered files are in the `migrations` folder of `package`.
    """

    database: Database
    schema: str
    package: str
    hint: str
    seconds: float = 10.0
    _opening: asyncio.Lock = field(default_factory=asyncio.Lock)
    _migrated: bool = False

    async def fetch(self, query: str, *values: Any) -> Sequence[Any]:
        """Run one statement. Raises UnreachableError while there is no server."""
        try:
            pool = await self._pool()
            return await pool.fetch(query, *values, timeout=self.seconds)
        except _AWAY as error:
            raise UnreachableError(
                what="PostgreSQL", address=self.database.address, hint=self.hint
            ) from error

    async def _pool(self) -> "asyncpg.Pool[asyncpg.Record]":
        async with self._opening:
            pool = await self.database.truth()
            if not self._migrated:
                known = migrations_of(self.package)
                await migrate(pool, schema=self.schema, known=known)
                self._migrated = True
            return pool
