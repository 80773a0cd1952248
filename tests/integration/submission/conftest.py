"""One submission of its own process, with three sources, for all tests of the door."""

import json
import shutil
import tempfile
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.integration.submission.publisher import Publisher, publisher

from trainmaster.testkit.cluster import Cluster, until

SOURCES = {
    "ci": {"team": "default", "role": "submitter"},
    "dcgm": {"team": "*", "role": "operator"},
    "elsewhere": {"team": "vision", "role": "submitter"},
}


@pytest.fixture(scope="session")
def with_sources() -> Iterator[Path]:
    """Not below pytest's own folder: for root, that one is closed to other users."""
    data = Path(tempfile.mkdtemp(prefix="tm-"))
    data.chmod(0o711)
    (data / "sources.json").write_text(json.dumps(SOURCES))
    yield data
    shutil.rmtree(data)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def door(with_sources: Path) -> AsyncGenerator[Cluster]:
    """Run both servers and submission."""
    cluster = Cluster(with_sources)
    await cluster.stack.start()
    try:
        cluster.start_service("submission")
        await until("it is ready", lambda: cluster.is_ready("submission"))
        yield cluster
    finally:
        await cluster.stop()


@pytest_asyncio.fixture(loop_scope="session")
async def ci(door: Cluster, with_sources: Path) -> AsyncGenerator[Publisher]:
    """Publish as a system that may submit for one team."""
    assert door.processes["submission"].poll() is None
    async with publisher(with_sources / "sources" / "ci.json") as connected:
        yield connected


@pytest_asyncio.fixture(loop_scope="session")
async def dcgm(door: Cluster, with_sources: Path) -> AsyncGenerator[Publisher]:
    """Publish as a system that may report on nodes."""
    assert door.processes["submission"].poll() is None
    async with publisher(with_sources / "sources" / "dcgm.json") as connected:
        yield connected
