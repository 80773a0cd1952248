"""Brings a service's truth tables up to date: numbered files, each applied once.

Projections are rebuilt and never migrated; this is for the few tables that cannot be
read again from the log. Replicas may start together: a lock lets one apply.
"""

import hashlib
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

import asyncpg

from trainmaster.core.errors import PermanentError

_NAME: Final = re.compile(r"([0-9]{4})_([a-z0-9_]+)\.sql")
_SCHEMA: Final = re.compile(r"[a-z][a-z0-9_]{0,62}")
_LOCK_SPACE: Final = 0x7432
_BOOK: Final = """
create table if not exists schema_migrations (
    number int primary key, name text not null, digest text not null,
    applied_at timestamptz not null default now())
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One step of a schema's history; what was applied must never change."""

    number: int
    name: str
    sql: str

    @property
    def digest(self) -> str:
        """Name the content."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


class MigrationError(PermanentError):
    """A truth schema and the files do not tell the same history."""

    def __init__(self, *, schema: str, problem: str, hint: str) -> None:
        super().__init__(f"schema {schema}: {problem}; {hint}")


def migrations_of(package: str) -> tuple[Migration, ...]:
    """Read the numbered files of a package's `migrations` folder, in order."""
    found: list[Migration] = []
    for each in files(package).joinpath("migrations").iterdir():
        parts = _NAME.fullmatch(each.name)
        if parts is not None:
            number, name = int(parts[1]), parts[2]
            found.append(Migration(number=number, name=name, sql=each.read_text()))
    return tuple(sorted(found, key=lambda migration: migration.number))


def missing(
    schema: str, known: Sequence[Migration], applied: Mapping[int, str]
) -> tuple[Migration, ...]:
    """Say what is to be applied; `applied` has digests by number.

    Raises MigrationError when the histories differ.
    """
    numbers = [migration.number for migration in known]
    if numbers != list(range(1, len(known) + 1)):
        raise MigrationError(
            schema=schema,
            problem=f"its migrations are numbered {numbers}",
            hint="number them 1, 2, 3 without gaps",
        )
    newer = sorted(set(applied) - set(numbers))
    if newer:
        raise MigrationError(
            schema=schema,
            problem=f"migration {newer[0]} is not known here",
            hint="a newer version wrote it, run that one or a later one",
        )
    for migration in known:
        if applied.get(migration.number, migration.digest) != migration.digest:
            raise MigrationError(
                schema=schema,
                problem=f"migration {migration.number} was changed after it ran",
                hint="restore the file and add a new one",
            )
    return tuple(m for m in known if m.number not in applied)


async def migrate(
    pool: "asyncpg.Pool[asyncpg.Record]", *, schema: str, known: Sequence[Migration]
) -> None:
    """Create the schema if need be and apply what is missing, all or nothing."""
    if _SCHEMA.fullmatch(schema) is None:
        raise MigrationError(
            schema=schema,
            problem="its name cannot be spelled without quotes",
            hint="use lower case letters, digits and `_`",
        )
    async with pool.acquire() as connection, connection.transaction():
        key = zlib.crc32(schema.encode()) & 0x7FFFFFFF
        await connection.execute(
            "select pg_advisory_xact_lock($1, $2)", _LOCK_SPACE, key
        )
        await connection.execute(f"create schema if not exists {schema}")
        await connection.execute(f"set local search_path = {schema}")
        await connection.execute(_BOOK)
        rows = await connection.fetch("select number, digest from schema_migrations")
        applied: dict[int, str] = {row["number"]: row["digest"] for row in rows}
        for step in missing(schema, known, applied):
            await connection.execute(step.sql)
            await connection.execute(
                "insert into schema_migrations (number, name, digest) "
                "values ($1, $2, $3)",
                step.number,
                step.name,
                step.digest,
            )
