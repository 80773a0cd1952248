"""What every backend promises, in the same sentences for all of them."""

import asyncio
import signal
import time

import pytest
from tests.backends.conftest import ATTEMPT, RANK, Node, ended, eventually

from trainmaster.launcher.backends import proc
from trainmaster.launcher.backends.model import (
    AttemptKey,
    Hindrance,
    Phase,
    RankKey,
    Spawned,
    SpawnFailed,
)

pytestmark = pytest.mark.unit

UP = "echo up > $OUT/up; exec sleep 1000"
COUNT = "echo started >> $OUT/starts; exec sleep 1000"
OTHER = RankKey(attempt=ATTEMPT, rank=1)
DEAF = "trap '' TERM; echo up > $OUT/up; while :; do sleep 1000; done"


async def test_a_rank_runs_and_its_exit_code_is_known(node: Node):
    spawned = await node.shell("echo hello; exit 3")
    end = await node.backend.wait(RANK)
    assert (end.code, end.signal, end.unknown, end.by_us) == (3, None, False, False)
    assert end.pid == spawned.process.pid
    assert node.log().read_text() == "hello\n"


async def test_launching_twice_starts_one(node: Node):
    first = await node.shell(COUNT)
    second = await node.shell(COUNT)
    assert (second.process, second.already) == (first.process, True)
    assert await node.said("starts") == "started"


async def test_launching_twice_at_once_starts_one(node: Node):
    first, second = await asyncio.gather(node.shell(COUNT), node.shell(COUNT))
    assert first.process == second.process
    assert await node.said("starts") == "started"


async def test_a_rank_that_has_ended_is_not_started_again(node: Node):
    first = await node.shell("echo started >> $OUT/starts")
    await node.backend.wait(RANK)
    again = await node.shell("echo started >> $OUT/starts")
    assert (again.process, again.already) == (first.process, True)
    assert await node.said("starts") == "started"


async def test_a_start_is_finished_even_if_who_asked_gives_up(node: Node):
    asking = asyncio.create_task(node.shell(COUNT))
    await eventually(lambda: bool(node.backend.find()))
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert (await node.shell(COUNT)).process
    assert await node.said("starts") == "started"


async def test_killing_twice_is_a_no_op(node: Node):
    await node.shell(UP)
    first = await node.backend.sweep(ATTEMPT)
    second = await node.backend.sweep(ATTEMPT)
    assert (first.clean, second.clean) == (True, True)
    assert len(first.killed) == 1
    assert second.killed == ()


async def test_stopping_twice_is_a_no_op(node: Node):
    await node.shell(UP)
    assert (await node.backend.stop(ATTEMPT, grace_seconds=5)).clean
    end = await node.backend.wait(RANK)
    again = await node.backend.stop(ATTEMPT, grace_seconds=5)
    assert (again.clean, again.killed) == (True, ())
    assert await node.backend.wait(RANK) == end


async def test_a_restarted_agent_finds_its_ranks_and_their_exit_codes(node: Node):
    spawned = await node.shell(UP)
    await node.shell("exit 9", key=OTHER)
    await node.backend.wait(OTHER)
    running, exited = node.restart().find()
    assert (running.key, running.phase, running.alive) == (RANK, Phase.RUNNING, True)
    assert (running.process, running.exit) == (spawned.process, None)
    assert (exited.key, exited.phase, exited.alive) == (OTHER, Phase.EXITED, False)
    assert exited.exit is not None
    assert exited.exit.code == 9


async def test_a_restarted_agent_waits_for_ranks_that_are_not_its_children(node: Node):
    spawned = await node.shell("until [ -e $OUT/go ]; do sleep 0.01; done; exit 7")
    (found,) = node.restart().find()
    assert (found.phase, found.process) == (Phase.RUNNING, spawned.process)
    waiting = [asyncio.create_task(node.backend.wait(RANK)) for _ in range(2)]
    (node.output / "go").touch()
    assert [end.code for end in await asyncio.gather(*waiting)] == [7, 7]


async def test_a_program_that_is_not_there_is_named(node: Node):
    outcome = await node.spawn("no-such-trainer", "--fast")
    assert isinstance(outcome, SpawnFailed)
    assert outcome.hindrance is Hindrance.STEP
    assert "program 'no-such-trainer': No such file or directory" in outcome.message
    (found,) = node.restart().find()
    assert (found.phase, found.failure) == (Phase.FAILED, outcome)
    assert (await node.backend.wait(RANK)).unknown


async def test_nothing_starts_in_a_closed_attempt(node: Node):
    assert (await node.backend.sweep(ATTEMPT)).clean
    outcome = await node.spawn("sh", "-c", COUNT)
    assert isinstance(outcome, SpawnFailed)
    assert outcome.hindrance is Hindrance.CLOSED
    assert "closed" in outcome.message
    later = RankKey(attempt=AttemptKey(job=ATTEMPT.job, number=2), rank=0)
    assert isinstance(await node.spawn("true", key=later), Spawned)


async def test_a_signal_from_outside_is_not_ours(node: Node):
    spawned = await node.shell(UP)
    await node.said("up")
    signal.pidfd_send_signal(proc.open_pidfd(spawned.process) or -1, signal.SIGKILL)
    end = await node.backend.wait(RANK)
    assert (end.code, end.signal, end.by_us) == (None, signal.SIGKILL, False)


async def test_a_signal_of_ours_is_ours(node: Node):
    await node.shell(UP)
    await node.said("up")
    assert node.backend.signal_group(ATTEMPT, signal.SIGTERM) == [RANK]
    end = await node.restart().wait(RANK)
    assert (end.signal, end.by_us) == (signal.SIGTERM, True)


async def test_a_signal_after_the_end_is_not_the_cause(node: Node):
    await node.shell("exit 0")
    await node.backend.wait(RANK)
    assert node.backend.signal_group(ATTEMPT, signal.SIGTERM) == []
    assert not (await node.backend.wait(RANK)).by_us


async def test_a_rank_that_ends_when_told_is_given_its_time(node: Node):
    await node.shell(
        "trap 'sleep 0.2; echo done > $OUT/saved; exit 0' TERM; echo up > $OUT/up;"
        " while :; do sleep 0.01; done"
    )
    await node.said("up")
    proof = await node.backend.stop(ATTEMPT, grace_seconds=8)
    assert (proof.clean, proof.killed) == (True, ())
    assert await node.said("saved") == "done"
    end = await node.backend.wait(RANK)
    assert (end.code, end.by_us) == (0, True)


async def test_training_under_a_shell_that_dies_at_once_is_given_its_time(node: Node):
    await node.shell(
        "(trap 'sleep 0.2; echo done > $OUT/saved; exit 0' TERM; echo up > $OUT/up;"
        " while :; do sleep 0.01; done); true"
    )
    await node.said("up")
    proof = await node.backend.stop(ATTEMPT, grace_seconds=8)
    assert (proof.clean, proof.killed) == (True, ())
    assert await node.said("saved") == "done"
    assert (await node.backend.wait(RANK)).signal == signal.SIGTERM


async def test_a_rank_that_ignores_term_dies_after_its_grace(node: Node):
    spawned = await node.shell(DEAF)
    await node.said("up")
    began = time.monotonic()
    proof = await node.backend.stop(ATTEMPT, grace_seconds=0.3)
    assert 0.3 <= time.monotonic() - began < 3
    assert spawned.process.pid in {killed.pid for killed in proof.killed}
    end = await node.backend.wait(RANK)
    assert (proof.clean, end.signal, end.by_us) == (True, signal.SIGKILL, True)
    await ended(spawned.process)


async def test_only_ranks_that_catch_the_save_signal_get_it(node: Node):
    await node.shell(
        "trap 'echo saved > $OUT/saved' USR1; echo up > $OUT/up;"
        " while :; do sleep 0.01; done"
    )
    careless = await node.run("sleep", "1000", key=OTHER)
    await node.said("up")
    assert node.backend.save_signal(ATTEMPT, signal.SIGUSR1) == [RANK]
    assert await node.said("saved") == "saved"
    assert proc.is_alive(careless.process)


async def test_one_attempt_is_swept_and_the_next_lives_on(node: Node):
    await node.shell(UP)
    later = RankKey(attempt=AttemptKey(job=ATTEMPT.job, number=2), rank=0)
    other = await node.run("sleep", "1000", key=later)
    assert (await node.backend.sweep(ATTEMPT)).clean
    assert proc.is_alive(other.process)


async def test_one_very_long_line_does_not_hold_a_rank_up(node: Node):
    size = 64 << 20
    await node.shell(f"head -c {size} /dev/zero | tr '\\0' x")
    end = await node.backend.wait(RANK)
    assert (end.code, node.log().stat().st_size) == (0, size)


async def test_what_is_forgotten_is_not_found(node: Node):
    await node.shell("exit 0")
    assert (await node.backend.sweep(ATTEMPT)).clean
    node.backend.forget(ATTEMPT)
    assert node.restart().find() == []
