"""Real servers for integration tests: started once, emptied for every test."""

import asyncio
import tempfile
from collections.abc import Generator
from pathlib import Path

import asyncpg
import pytest

from trainmaster.runtime.provision import declare_streams, deploy_folder, read_streams
from trainmaster.runtime.stack import Options, Stack


@pytest.fixture(scope="session")
def servers() -> Generator[Stack]:
    """Run nats-server and PostgreSQL, provisioned."""
    data = Path(tempfile.mkdtemp(prefix="tm-test-"))
    data.chmod(0o711)
    running = Stack(Options(data=data, nodes=2))
    asyncio.run(running.start())
    try:
        yield running
    finally:
        asyncio.run(running.stop())
        asyncio.run(running.postgres.remove())


@pytest.fixture
async def stack(servers: Stack) -> Stack:
    """Give one test empty streams and no tables."""
    bus = await servers.provisioner()
    for name in read_streams(deploy_folder()):
        await bus.ask_api(f"STREAM.DELETE.{name}", {})
    await declare_streams(bus, read_streams(deploy_folder()))
    await bus.close()
    await _drop_schemas(servers)
    return servers


async def _drop_schemas(servers: Stack) -> None:
    connection = await asyncpg.connect(servers.postgres.superuser_dsn("trainmaster"))
    try:
        rows = await connection.fetch(
            "select nspname from pg_namespace where nspowner in "
            "(select oid from pg_roles where rolname like 'tm\\_%')"
        )
        for row in rows:
            await connection.execute(f"drop schema {row['nspname']} cascade")
    finally:
        await connection.close()
