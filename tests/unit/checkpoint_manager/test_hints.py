"""A hint that there is a checkpoint: looked at once, believed never."""

import time
from pathlib import Path

import pytest
from tests.unit.checkpoint_manager.conftest import NODES
from tests.unit.checkpoint_manager.node import answering, save, tear
from tests.unit.checkpoint_manager.scenes import saving

from trainmaster.checkpoint_manager.hints import Hints
from trainmaster.checkpoint_manager.policy import CheckpointManager
from trainmaster.checkpoint_manager.scan import Scanner
from trainmaster.checkpoint_manager.store import tables
from trainmaster.core.ingress_subjects import checkpoint_hint
from trainmaster.core.notes import CheckpointVerified
from trainmaster.runtime.clock import pause
from trainmaster.runtime.service import Env, Service
from trainmaster.testkit.builders import KEY, a_history
from trainmaster.testkit.servers import WITHIN_SECONDS, Stack

pytestmark = pytest.mark.integration
NAME = "checkpoint-manager"
NOTE = f"tm.note.{KEY.team}.{KEY.job}.>"
N1, _ = NODES
RUNNING = "submitted placed ordered started"


def build_slow(env: Env) -> Service:
    """Watch once an hour: what is found before, a hint has found."""
    scanner = Scanner(env, watch_seconds=3600)
    return Service(
        policy=CheckpointManager(),
        tables=tables(),
        effects=(scanner,),
        tasks=(Hints(env, scanner.hint).run,),
    )


async def test_a_hint_makes_it_look_at_once_and_proves_nothing(
    servers: Stack, tmp_path: Path
):
    directory = tmp_path / "checkpoints"
    spec = saving(directory=str(directory))
    async with answering(servers, N1), servers.running(NAME, build_slow):
        await servers.tell(KEY, a_history(RUNNING, spec=spec))
        save(directory, 100)
        torn = save(directory, 200, content="x" * 4096)
        tear(torn)
        await _hinted(servers)
        verified = await servers.heard(NOTE, CheckpointVerified)
    steps = [e.event.step for e in verified if isinstance(e.event, CheckpointVerified)]
    assert steps == [100]


async def _hinted(servers: Stack) -> None:
    """Hint until it is heard: nobody says when a follower has begun to rest."""
    deadline = time.monotonic() + WITHIN_SECONDS
    while not await servers.entries(NOTE):
        assert time.monotonic() < deadline, "no hint was heard"
        await servers.admin.client.publish(checkpoint_hint(KEY), b"")
        await pause(0.05)
