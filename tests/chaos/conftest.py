"""A whole Trainmaster of processes for one module of chaos."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.chaos.remains import whole_cluster

from trainmaster.testkit.cluster import Cluster


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running() -> AsyncGenerator[Cluster]:
    """Start servers, all services and two nodes, each a process."""
    async with whole_cluster(nodes=2, accelerators=10) as started:
        yield started


@pytest.fixture
def shared_folder(tmp_path: Path) -> Path:
    """Make a folder in which ranks may write, whoever they run as."""
    tmp_path.chmod(0o777)
    return tmp_path
