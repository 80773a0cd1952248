"""One stack for all of these tests, started as a user does."""

import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest
from tests.e2e.stack import Stack, running_stack


@pytest.fixture(scope="session")
def stack() -> Generator[Stack]:
    """Run servers, services and two nodes of four accelerators in one process."""
    data = Path(tempfile.mkdtemp(prefix="tm-e2e-"))
    data.chmod(0o711)  # PostgreSQL may have to be another user
    with running_stack(data) as started:
        yield started
