"""Agents are killed at every moment of a start; ranks neither notice nor double."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path

import pytest
from tests.backends.conftest import ATTEMPT, RANK, Node, eventually

from trainmaster.launcher.backends import proc
from trainmaster.launcher.backends.model import Phase, SpawnFailed

# one loop is enough for what happens in other processes
pytestmark = [pytest.mark.chaos, pytest.mark.asyncio(loop_factories=["asyncio"])]

AGENT = Path(__file__).with_name("agent_side.py")
COUNT = "echo started >> $OUT/starts; exec sleep 1000"
UNTIL_TOLD = "until [ -e $OUT/go ]; do sleep 0.01; done; exit 7"


async def agent(node: Node, script: str, *, failpoint: str = "") -> Process:
    """Run an agent as a process of its own."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        str(AGENT),
        str(node.root),
        str(node.output),
        script,
        env={**os.environ, "TM_FAILPOINTS": failpoint},
        stdout=PIPE,
    )


async def word(process: Process) -> str:
    """Read the one line an agent says."""
    assert process.stdout is not None
    return (await process.stdout.readline()).decode()


async def kill(process: Process) -> None:
    process.kill()
    assert await process.wait() == -signal.SIGKILL


async def test_ranks_of_a_killed_agent_are_found_with_their_exit_code(node: Node):
    first = await agent(node, UNTIL_TOLD)
    assert (await word(first)).startswith("Spawned")
    await kill(first)
    (found,) = node.restart().find()
    assert (found.phase, found.alive) == (Phase.RUNNING, True)
    (node.output / "go").touch()
    assert (await node.backend.wait(RANK)).code == 7


async def test_a_rank_that_ended_while_no_agent_ran_has_its_exit_code(node: Node):
    first = await agent(node, UNTIL_TOLD)
    assert (await word(first)).startswith("Spawned")
    await kill(first)
    (node.output / "go").touch()
    await eventually((node.directory() / "exit.json").exists)
    (found,) = node.restart().find()
    assert found.exit is not None
    assert (found.phase, found.exit.code) == (Phase.EXITED, 7)


async def test_nothing_is_left_after_a_killed_agents_attempt_is_swept(node: Node):
    first = await agent(node, COUNT)
    assert (await word(first)).startswith("Spawned")
    await kill(first)
    assert (await node.restart().stop(ATTEMPT, grace_seconds=5)).clean
    assert (await node.backend.wait(RANK)).by_us


@pytest.mark.parametrize("place", ["process.before_spawn", "process.after_spawn"])
async def test_an_agent_killed_while_starting_leaves_one_start(node: Node, place: str):
    first = await agent(node, COUNT, failpoint=f"{place}=kill")
    assert await first.wait() == -signal.SIGKILL
    again = await node.restart().spawn(node.request(node.spec("sh", "-c", COUNT)))
    assert not isinstance(again, SpawnFailed), again.message
    assert again.already == (place == "process.after_spawn")
    assert await node.said("starts") == "started"
    assert proc.is_alive(again.process)


@pytest.mark.parametrize("place", ["process.before_spawn", "process.after_spawn"])
async def test_a_sweep_right_after_a_killed_start_lets_nothing_through(
    node: Node, place: str
):
    first = await agent(node, COUNT, failpoint=f"{place}=kill")
    assert await first.wait() == -signal.SIGKILL
    assert (await node.restart().sweep(ATTEMPT)).clean
    (found,) = node.backend.find()
    assert not found.alive
    assert found.phase in {Phase.UNKNOWN, Phase.EXITED}


async def test_two_agents_that_start_the_same_rank_at_once_start_one(node: Node):
    both = [await agent(node, COUNT) for _ in range(2)]
    words = {await word(each) for each in both}
    for each in both:
        await kill(each)
    assert len(words) == 1, "one was told of another rank than the other"
    assert await node.said("starts") == "started"


async def test_a_frozen_agent_in_the_middle_of_a_start_keeps_the_proof_open(node: Node):
    frozen = await agent(node, COUNT, failpoint="process.before_spawn=stop")
    await eventually(lambda: bool(node.backend.find()))
    assert node.backend.find()[0].phase is Phase.STARTING
    proof = await node.backend.sweep(ATTEMPT, within_seconds=0.2)
    assert (proof.clean, proof.in_flight) == (False, (RANK.rank,))
    assert "ranks (0,) still starting" in proof.detail
    frozen.send_signal(signal.SIGCONT)
    await word(frozen)
    await kill(frozen)
    assert (await node.backend.sweep(ATTEMPT)).clean
