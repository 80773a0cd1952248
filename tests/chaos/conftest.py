"""A whole Trainmaster of processes for one module of chaos."""

from collections.abc import AsyncGenerator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.chaos.remains import whole_cluster

from trainmaster.testkit.cluster import Cluster


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(pytestconfig: pytest.Config) -> AsyncGenerator[Cluster]:
    """Start servers, all services and two nodes, each a process."""

    def say(line: str) -> None:
        manager = pytestconfig.pluginmanager
        capture: Any = manager.getplugin("capturemanager")  # it has no public type
        with capture.global_and_fixture_disabled() if capture else nullcontext():
            pytestconfig.get_terminal_writer().line(line)

    async with whole_cluster(nodes=2, accelerators=10, say=say) as started:
        yield started


@pytest.fixture
def shared_folder(tmp_path: Path) -> Path:
    """Make a folder in which ranks may write, whoever they run as."""
    tmp_path.chmod(0o777)
    return tmp_path
