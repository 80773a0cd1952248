"""A server that is told what to answer, and a terminal that knows it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.cli.terminal import Terminal
from tests.unit.client.server import Server, serving


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


@pytest.fixture
def terminal(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Terminal:
    terminal = Terminal(tmp_path, capsys)
    terminal.knows(server)
    return terminal
