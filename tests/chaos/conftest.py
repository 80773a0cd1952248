"""A whole Trainmaster of processes for one module of chaos."""

import tempfile
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio

from trainmaster.testkit.cluster import Cluster, cluster


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running() -> AsyncGenerator[Cluster]:
    """Start servers, all services and two nodes, each a process."""
    async with cluster(_data(), nodes=2, accelerators=10) as started:
        yield started


def _data() -> Path:
    data = Path(tempfile.mkdtemp(prefix="tm-chaos-"))
    data.chmod(0o711)  # PostgreSQL may have to be another user
    return data


@pytest.fixture
def shared_folder(tmp_path: Path) -> Path:
    """Make a folder in which ranks may write, whoever they run as."""
    tmp_path.chmod(0o777)
    return tmp_path
