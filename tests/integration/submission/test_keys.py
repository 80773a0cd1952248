"""The book of idempotency keys: PostgreSQL and the fake keep the same promises."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import asyncpg
import pytest
from tests.unit.submission.world import FakeKeys

from trainmaster.core.errors import UnreachableError
from trainmaster.core.ids import JobId
from trainmaster.runtime.database import Database
from trainmaster.runtime.embedded import EmbeddedPostgres
from trainmaster.runtime.migrations import (
    Migration,
    MigrationError,
    migrate,
    migrations_of,
)
from trainmaster.submission.ports import Claim, KeyBook
from trainmaster.submission.store import Keys

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def data() -> Iterator[Path]:
    """Not below pytest's own folder: for root, that one is closed to other users."""
    path = Path(tempfile.mkdtemp(prefix="tm-"))
    yield path
    asyncio.run(EmbeddedPostgres(data=path).remove())
    shutil.rmtree(path)


@pytest.fixture
async def server(data: Path) -> EmbeddedPostgres:
    server = EmbeddedPostgres(data=data)
    await server.start()
    return server


@pytest.fixture
async def database(server: EmbeddedPostgres) -> AsyncIterator[Database]:
    database = Database(dsn=server.superuser_dsn(), service="submission")
    yield database
    pool = await database.truth()
    await pool.execute("drop schema if exists submission_truth cascade")
    await database.close()


@pytest.fixture(params=["fake", "postgresql"])
def book(request: pytest.FixtureRequest) -> KeyBook:
    if request.param == "fake":
        return FakeKeys()
    database: Database = request.getfixturevalue("database")
    return Keys(database)


def a_claim(job: str, *, key: str = "k", digest: str = "d") -> Claim:
    return Claim(key=key, digest=digest, team="default", job=JobId(job))


async def test_the_first_claim_of_a_key_stands(book: KeyBook):
    first = await book.claim(a_claim("j1"))
    second = await book.claim(a_claim("j2", digest="other"))
    assert (first.job, first.digest) == (second.job, second.digest) == ("j1", "d")
    assert timedelta() <= second.age < timedelta(minutes=1)


async def test_of_many_claims_at_once_one_stands(book: KeyBook):
    claims = [a_claim(f"j{n}", key=f"k{n % 3}") for n in range(60)]
    found = await asyncio.gather(*(book.claim(claim) for claim in claims))
    for key in range(3):
        jobs = {c.job for n, c in enumerate(found) if n % 3 == key}
        assert jobs == {f"j{key}"}


async def test_a_released_key_can_be_claimed_again(book: KeyBook):
    await book.claim(a_claim("j1"))
    await book.release("k", JobId("j1"))
    assert (await book.claim(a_claim("j2"))).job == "j2"


async def test_a_key_is_not_released_for_another_job(book: KeyBook):
    await book.claim(a_claim("j1"))
    await book.release("k", JobId("j2"))
    assert (await book.claim(a_claim("j3"))).job == "j1"


async def test_a_claim_outlives_a_kill_of_the_server(
    server: EmbeddedPostgres, database: Database
):
    await Keys(database).claim(a_claim("j1"))
    await server.kill()
    with pytest.raises(UnreachableError, match=r"PostgreSQL at 127\.0\.0\.1:\d+/"):
        await Keys(database).claim(a_claim("j2"))
    await server.start()
    again = Database(dsn=server.superuser_dsn(), service="submission")
    assert (await Keys(again).claim(a_claim("j3"))).job == "j1"
    await again.close()


# ---------------------------------------------------------------------- migrations


FIRST = Migration(number=1, name="first", sql="create table a (x int)")
SECOND = Migration(number=2, name="second", sql="alter table a add y int")


async def columns(pool: "asyncpg.Pool[asyncpg.Record]") -> list[str]:
    rows = await pool.fetch(
        "select column_name from information_schema.columns "
        "where table_schema = 'submission_truth' and table_name = 'a' order by 1"
    )
    return [row["column_name"] for row in rows]


async def applied(database: Database, known: Sequence[Migration]) -> list[str]:
    pool = await database.truth()
    await migrate(pool, schema="submission_truth", known=known)
    return await columns(pool)


async def test_each_migration_is_applied_once(database: Database):
    assert await applied(database, [FIRST]) == ["x"]
    assert await applied(database, [FIRST, SECOND]) == ["x", "y"]
    assert await applied(database, [FIRST, SECOND]) == ["x", "y"]


async def test_replicas_that_start_together_apply_once(database: Database):
    found = await asyncio.gather(
        *(applied(database, [FIRST, SECOND]) for _ in range(4))
    )
    assert found == [["x", "y"]] * 4


async def test_a_failing_migration_leaves_nothing_behind(database: Database):
    broken = Migration(number=2, name="broken", sql="alter table a add y nothing")
    with pytest.raises(asyncpg.UndefinedObjectError):
        await applied(database, [FIRST, broken])
    assert await columns(await database.truth()) == []


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ([FIRST], "migration 2 is not known here"),
        (
            [Migration(number=1, name="first", sql="select 1"), SECOND],
            "migration 1 was changed after it ran",
        ),
        ([FIRST, SECOND, SECOND], "numbered [1, 2, 2]"),
    ],
)
async def test_a_history_that_differs_is_refused(
    database: Database, known: Sequence[Migration], said: str
):
    await applied(database, [FIRST, SECOND])
    with pytest.raises(MigrationError) as caught:
        await applied(database, known)
    assert said in str(caught.value)


def test_submissions_own_migrations_are_numbered_without_gaps():
    found = migrations_of("trainmaster.submission")
    assert [migration.number for migration in found] == list(range(1, len(found) + 1))
