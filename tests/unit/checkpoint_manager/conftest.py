"""A bus, a database and two nodes with a real disk between them."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from trainmaster.core.ids import NodeKey
from trainmaster.runtime.embedded import EmbeddedPostgres
from trainmaster.testkit.servers import Stack, stack, start_database

NODES = (NodeKey("local", "n1"), NodeKey("local", "n2"))


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedPostgres]:
    postgres = asyncio.run(start_database(tmp_path_factory.mktemp("database")))
    yield postgres

    async def remove() -> None:
        await postgres.kill()  # nothing in it is needed any more
        await postgres.remove()

    asyncio.run(remove())


@pytest.fixture
async def servers(tmp_path: Path, postgres: EmbeddedPostgres) -> AsyncIterator[Stack]:
    async with stack(tmp_path / "bus", postgres, nodes=NODES) as running:
        yield running
