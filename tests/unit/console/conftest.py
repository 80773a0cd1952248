"""A real bus and a real database for the console's tests, empty for each."""

import asyncio
import tempfile
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest

from trainmaster.runtime.embedded import EmbeddedPostgres
from trainmaster.testkit.servers import Stack, stack, start_database


@pytest.fixture(scope="session")
def postgres() -> Generator[EmbeddedPostgres]:
    data = Path(tempfile.mkdtemp(prefix="tm-test-"))
    data.chmod(0o711)
    database = asyncio.run(start_database(data))
    yield database
    asyncio.run(database.stop())
    asyncio.run(database.remove())


@pytest.fixture
async def world(postgres: EmbeddedPostgres, tmp_path: Path) -> AsyncGenerator[Stack]:
    async with stack(tmp_path, postgres) as servers:
        await servers.forget("console")
        yield servers
