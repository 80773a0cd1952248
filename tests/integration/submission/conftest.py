"""One submission of its own process, with three sources, for a module of tests."""

import json
import shutil
import tempfile
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from trainmaster.testkit.cluster import Cluster, until

SOURCES = {
    "ci": {"team": "default", "role": "submitter"},
    "dcgm": {"team": "*", "role": "operator"},
    "elsewhere": {"team": "vision", "role": "submitter"},
}


@pytest.fixture(scope="module")
def with_sources() -> Iterator[Path]:
    """Not below pytest's own folder: for root, that one is closed to other users."""
    data = Path(tempfile.mkdtemp(prefix="tm-"))
    data.chmod(0o711)
    (data / "sources.json").write_text(json.dumps(SOURCES))
    yield data
    shutil.rmtree(data)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
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
