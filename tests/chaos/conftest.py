"""A whole Trainmaster of processes for one module of chaos."""

import tempfile
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest_asyncio

from trainmaster.testkit.cluster import Cluster, cluster


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running() -> AsyncGenerator[Cluster]:
    """Start servers, all services and two nodes, each a process."""
    data = Path(tempfile.mkdtemp(prefix="tm-chaos-"))
    data.chmod(0o711)
    async with cluster(data, nodes=2, accelerators=10) as started:
        yield started
