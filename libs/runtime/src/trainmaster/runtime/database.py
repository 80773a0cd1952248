"""A service's own PostgreSQL: who is active, how far it read, its rows.

The log is the truth, so rows are committed without waiting for the disk; a schema of
another version is not migrated but dropped and rebuilt by replay.
"""

import asyncio
import json
import zlib
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import asyncpg

from trainmaster.core.errors import LeadershipLostError, UnreachableError
from trainmaster.runtime.clock import pause
from trainmaster.runtime.heads import Head
from trainmaster.runtime.reader import Place

if TYPE_CHECKING:  # asyncpg's classes are generic only for type checkers
    from asyncpg.pool import PoolConnectionProxy

    Connection = (
        asyncpg.Connection[asyncpg.Record] | PoolConnectionProxy[asyncpg.Record]
    )
_IDLE_SESSION: Final = "3s"
_PING_SECONDS: Final = 1.3
_CONNECT_SECONDS: Final = 5.0
_LOCK_SPACE: Final = 0x7431
_TABLES: Final = """
create table if not exists document (
    collection text not null, key text not null, body json not null,
    primary key (collection, key));
create table if not exists head (
    scope text primary key, seq bigint not null, id text not null);
create table if not exists place (
    stream text primary key, epoch int not null, seq bigint not null,
    id text not null, created text not null);
create table if not exists alive (
    one boolean primary key default true check (one),
    at timestamptz not null, blind jsonb not null);
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """Everything a loop left behind."""

    documents: Mapping[str, Mapping[str, str]] = field(
        default_factory=dict[str, Mapping[str, str]]
    )
    heads: Mapping[str, Head] = field(default_factory=dict[str, Head])
    places: Mapping[str, Place] = field(default_factory=dict[str, Place])
    alive_at: datetime | None = None
    blind: tuple[tuple[datetime, datetime], ...] = ()


@dataclass(slots=True, kw_only=True)
class Changes:
    """What one transaction writes; None as a body deletes the row."""

    documents: dict[tuple[str, str], str | None]
    heads: dict[str, Head | None]
    moved: dict[str, tuple[Place, Place]]
    alive_at: datetime
    blind: tuple[tuple[datetime, datetime], ...] = ()


class Leader:
    """The session that holds the advisory lock: whoever has it is active."""

    def __init__(self, connection: "Connection", service: str) -> None:
        self._connection = connection
        self._service = service
        self._turn = asyncio.Lock()

    async def ping(self) -> None:
        """Keep the session; raises LeadershipLostError when it is gone."""
        while True:
            await pause(_PING_SECONDS)
            async with self._turn:
                await self.check()

    async def check(self) -> None:
        """Raise LeadershipLostError unless this session still lives."""
        try:
            await self._connection.execute("select 1")
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            raise LeadershipLostError(service=self._service) from error

    async def load(self, epoch: int) -> Saved:
        """Read rows, heads and places of this epoch in one snapshot."""
        async with (
            self._turn,
            self._connection.transaction(isolation="repeatable_read"),
        ):
            fetch = self._connection.fetch
            documents: dict[str, dict[str, str]] = {}
            rows = await fetch("select collection, key, body from document")
            for collection, key, body in rows:
                documents.setdefault(collection, {})[key] = body
            heads = await fetch("select scope, seq, id from head")
            places = await fetch(
                "select stream, seq, id, created from place where epoch = $1",
                epoch,
            )
            alive = await self._connection.fetchrow("select at, blind from alive")
        return Saved(
            documents=documents,
            heads={scope: Head(seq=seq, id=id_) for scope, seq, id_ in heads},
            places={
                stream: Place(seq=seq, id=id_, created=created)
                for stream, seq, id_, created in places
            },
            alive_at=alive["at"] if alive else None,
            blind=_intervals(alive["blind"]) if alive else (),
        )

    async def save(self, changes: Changes, epoch: int) -> None:
        """Write one batch's rows; raises LeadershipLostError if a place moved."""
        try:
            async with self._turn, self._connection.transaction():
                await self._save(changes, epoch)
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            raise LeadershipLostError(service=self._service) from error

    async def _save(self, changes: Changes, epoch: int) -> None:
        execute = self._connection.execute
        gone = [k for k, body in changes.documents.items() if body is None]
        kept = [(*k, body) for k, body in changes.documents.items() if body is not None]
        if kept:
            await execute(
                "insert into document (collection, key, body) "
                "select * from unnest($1::text[], $2::text[], $3::json[]) "
                "on conflict (collection, key) do update set body = excluded.body",
                *map(list, zip(*kept, strict=True)),
            )
        if gone:
            await execute(
                "delete from document d "
                "using unnest($1::text[], $2::text[]) as g(collection, key) "
                "where d.collection = g.collection and d.key = g.key",
                *map(list, zip(*gone, strict=True)),
            )
        await self._save_heads(changes.heads)
        for stream, (before, after) in changes.moved.items():
            await self._move(stream, epoch, before, after)
        blind = json.dumps([[a.isoformat(), b.isoformat()] for a, b in changes.blind])
        await execute(
            "insert into alive (at, blind) values ($1, $2) "
            "on conflict (one) do update set at = excluded.at, blind = excluded.blind",
            changes.alive_at,
            blind,
        )

    async def _save_heads(self, heads: Mapping[str, Head | None]) -> None:
        kept = [(s, h.seq, h.id) for s, h in heads.items() if h is not None]
        gone = [s for s, h in heads.items() if h is None]
        if kept:
            await self._connection.execute(
                "insert into head (scope, seq, id) "
                "select * from unnest($1::text[], $2::bigint[], $3::text[]) "
                "on conflict (scope) do update "
                "set seq = excluded.seq, id = excluded.id",
                *map(list, zip(*kept, strict=True)),
            )
        if gone:
            await self._connection.execute(
                "delete from head where scope = any($1::text[])",
                gone,
            )

    async def _move(self, stream: str, epoch: int, before: Place, after: Place) -> None:
        moved = await self._connection.fetchval(
            "insert into place as p "
            "(stream, epoch, seq, id, created) values ($1, $2, $3, $4, $5) "
            "on conflict (stream) do update set epoch = excluded.epoch, "
            "seq = excluded.seq, id = excluded.id, created = excluded.created "
            "where p.epoch <> $2 or p.seq = $6 returning true",
            stream,
            epoch,
            after.seq,
            after.id,
            after.created,
            before.seq,
        )
        if not moved:
            raise LeadershipLostError(service=self._service)


class Database:
    """One service's role in PostgreSQL."""

    def __init__(self, *, dsn: str, service: str) -> None:
        self._dsn = dsn
        self._service = service
        self.pool: asyncpg.Pool[asyncpg.Record] | None = None

    @property
    def address(self) -> str:
        """Name the server for people: without the password."""
        return self._dsn.rpartition("@")[2].partition("?")[0]

    @asynccontextmanager
    async def leader(self, *, schema: str) -> AsyncGenerator[Leader]:
        """Wait until this process is the active replica, then hold on to it."""
        connection = await self._connect()
        try:
            key = zlib.crc32(self._service.encode()) & 0x7FFFFFFF
            await connection.execute(
                "select pg_advisory_lock($1, $2)", _LOCK_SPACE, key
            )
            await connection.execute(
                f"set idle_session_timeout = '{_IDLE_SESSION}'; "
                "set synchronous_commit = off"
            )
            await prepare(connection, schema=schema)
            yield Leader(connection, self._service)
        finally:
            connection.terminate()  # drops the lock at once, even half-way a query

    async def truth(self) -> "asyncpg.Pool[asyncpg.Record]":
        """Open the pool for truth tables, which do wait for the disk."""
        if self.pool is None:
            self.pool = await asyncpg.create_pool(self._dsn, min_size=0, max_size=4)
        return self.pool

    async def close(self) -> None:
        """Close the pool."""
        if self.pool is not None:
            await self.pool.close()

    async def _connect(self) -> "asyncpg.Connection[asyncpg.Record]":
        try:
            return await asyncpg.connect(self._dsn, timeout=_CONNECT_SECONDS)
        except (OSError, TimeoutError, asyncpg.PostgresError) as error:
            raise UnreachableError(
                what="PostgreSQL",
                address=self.address,
                hint=f"{type(error).__name__}: {error}; `tm up` starts one",
            ) from error


async def prepare(connection: "Connection", *, schema: str) -> None:
    """Create a projection's schema, and drop its older versions."""
    stem = schema.rpartition("_v")[0]
    rows: Iterable[Any] = await connection.fetch(
        "select nspname from pg_namespace where nspname ~ $1 and nspname <> $2",
        f"^{stem}_v[0-9]+$",
        schema,
    )
    for (older,) in rows:
        await connection.execute(f"drop schema {older} cascade")
    await connection.execute(f"create schema if not exists {schema}")
    await connection.execute(f"set search_path = {schema}")
    await connection.execute(_TABLES)


def _intervals(text: str) -> tuple[tuple[datetime, datetime], ...]:
    return tuple(
        (datetime.fromisoformat(a), datetime.fromisoformat(b))
        for a, b in json.loads(text)
    )
