"""What is true of processes in particular: where they hide and who they are not."""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import AsyncGenerator, Mapping
from typing import Final

import pytest
from tests.backends.conftest import ATTEMPT, RANK, Node, ended

from trainmaster.launcher.backends import proc
from trainmaster.launcher.backends.model import (
    Evidence,
    Hindrance,
    Identity,
    Phase,
    ProofKind,
    SpawnFailed,
)

# the conformance suite runs on every loop, this on one
pytestmark = [pytest.mark.unit, pytest.mark.asyncio(loop_factories=["asyncio"])]

TELL: Final = "echo $$ > $OUT/child.new; mv $OUT/child.new $OUT/child; exec sleep 1000"


def send(identity: Identity, number: int) -> None:
    pidfd = proc.open_pidfd(identity)
    assert pidfd is not None
    signal.pidfd_send_signal(pidfd, number)
    os.close(pidfd)


def forge(node: Node, **changes: object) -> None:
    """Rewrite what stands in the record of a rank's start."""
    path = node.directory() / "started.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps(record | changes))


@contextlib.asynccontextmanager
async def stranger(script: str) -> AsyncGenerator[asyncio.subprocess.Process]:
    """Run a process that has nothing to do with us, in a session of its own."""
    process = await asyncio.create_subprocess_exec(
        "sh", "-c", script, stdout=asyncio.subprocess.PIPE, start_new_session=True
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def identity_of(pid: int) -> Identity:
    stat = proc.read_stat(pid)
    assert stat is not None
    return Identity(pid=pid, start_ticks=stat.start_ticks, boot_id=proc.boot_id())


async def end_without_record(node: Node) -> None:
    await node.shell("exit 0")
    await node.backend.wait(RANK)
    (node.directory() / "exit.json").unlink()


def as_record(identity: Identity, *, ticks_off: int = 0) -> Mapping[str, int]:
    return {"pid": identity.pid, "start_ticks": identity.start_ticks + ticks_off}


# ------------------------------------------------------------------- those that hide


@pytest.mark.parametrize("cgroups", [True, False], ids=["cgroup", "no cgroup"])
@pytest.mark.parametrize(
    "wrapper",
    ["", "setsid -f", "env -i setsid -f", "env -i setsid setsid -f"],
    ids=["child", "own session", "no token", "own session twice"],
)
async def test_grandchildren_are_gone_after_a_sweep(
    node: Node, wrapper: str, *, cgroups: bool
):
    node.restart(cgroups=cgroups)
    background = "" if "-f" in wrapper else " &"
    await node.shell(
        f"{wrapper} env OUT=$OUT PATH=$PATH sh -c '{TELL}'{background}\nsleep 1000"
    )
    grandchild = await node.process_in("child")
    proof = await node.backend.sweep(ATTEMPT)
    assert proof.clean
    assert grandchild.pid in {killed.pid for killed in proof.killed}
    await ended(grandchild)


async def test_grandchildren_outlive_their_rank_only_until_the_sweep(node: Node):
    await node.shell(f"setsid -f sh -c '{TELL}'; exit 4")
    grandchild = await node.process_in("child")
    assert (await node.backend.wait(RANK)).code == 4
    assert proc.is_alive(grandchild)
    proof = await node.backend.sweep(ATTEMPT)
    assert proof.clean
    assert [killed.pid for killed in proof.killed] == [grandchild.pid]
    assert "sleep" in proof.detail


async def test_what_left_its_parents_and_token_is_known_by_its_session(node: Node):
    node.restart(cgroups=False)
    spawned = await node.shell(
        f"env -i OUT=$OUT PATH=$PATH sh -c '{TELL}' &\n"
        "until [ -e $OUT/child ]; do sleep 0.01; done; exit 4"
    )
    grandchild = await node.process_in("child")
    assert (await node.backend.wait(RANK)).code == 4
    send(spawned.shim, signal.SIGKILL)
    await ended(spawned.shim)
    proof = await node.backend.sweep(ATTEMPT)
    assert [killed.evidence for killed in proof.killed] == [Evidence.SESSION]
    assert proof.clean
    await ended(grandchild)


async def test_with_its_shim_killed_a_rank_is_found_and_swept(node: Node):
    node.restart(cgroups=False)
    spawned = await node.shell(f"setsid -f sh -c '{TELL}'; exec sleep 1000")
    grandchild = await node.process_in("child")
    send(spawned.shim, signal.SIGKILL)
    await ended(spawned.shim)
    (found,) = node.restart().find()
    assert (found.phase, found.alive) == (Phase.UNKNOWN, True)
    assert (await node.backend.sweep(ATTEMPT)).clean
    end = await node.backend.wait(RANK)
    assert (end.unknown, end.code, end.signal, end.by_us) == (True, None, None, True)
    await ended(spawned.process)
    await ended(grandchild)


async def test_with_its_shim_killed_the_end_of_a_rank_is_unknown(node: Node):
    spawned = await node.shell("until [ -e $OUT/go ]; do sleep 0.01; done; exit 0")
    send(spawned.shim, signal.SIGKILL)
    await ended(spawned.shim)
    (node.output / "go").touch()
    end = await node.backend.wait(RANK)
    assert (end.unknown, end.code, end.by_us) == (True, None, False)


async def test_a_shim_hears_nothing_it_can_refuse(node: Node):
    spawned = await node.shell("until [ -e $OUT/go ]; do sleep 0.01; done; exit 6")
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        send(spawned.shim, number)
    (node.output / "go").touch()
    assert (await node.backend.wait(RANK)).code == 6
    await ended(spawned.shim)


async def test_a_start_that_left_processes_but_no_record_is_not_repeated(node: Node):
    spawned = await node.run("sleep", "1000")
    (node.directory() / "started.json").unlink()
    outcome = await node.spawn("sleep", "1000")
    assert isinstance(outcome, SpawnFailed)
    assert outcome.hindrance is Hindrance.UNKNOWN
    assert node.backend.find()[0].phase is Phase.UNKNOWN
    assert (await node.backend.sweep(ATTEMPT)).clean
    await ended(spawned.process)


# ------------------------------------------------------------------- those we are not


async def test_a_recycled_pid_is_not_touched(node: Node):
    await end_without_record(node)
    async with stranger("exec sleep 1000") as process:
        other = identity_of(process.pid)
        record = as_record(other, ticks_off=-1)
        forge(node, rank=record, shim=record)
        (found,) = node.restart().find()
        assert (found.phase, found.alive) == (Phase.UNKNOWN, False)
        assert node.backend.signal_group(ATTEMPT, signal.SIGKILL) == []
        assert node.backend.save_signal(ATTEMPT, signal.SIGTERM) == []
        assert (await node.backend.wait(RANK)).unknown
        proof = await node.backend.stop(ATTEMPT, grace_seconds=0.1)
        assert (proof.clean, proof.killed) == (True, ())
        assert proc.is_alive(other)


async def test_after_a_boot_the_same_pid_is_somebody_else(node: Node):
    await end_without_record(node)
    async with stranger("exec sleep 1000") as process:
        other = identity_of(process.pid)
        forge(node, rank=as_record(other), shim=as_record(other), boot_id="earlier")
        (found,) = node.restart().find()
        assert (found.phase, found.alive) == (Phase.UNKNOWN, False)
        assert (await node.backend.wait(RANK)).unknown
        proof = await node.backend.stop(ATTEMPT, grace_seconds=0.1)
        assert (proof.clean, proof.kind) == (True, ProofKind.BOOT_CHANGED)
        assert proc.is_alive(other)


async def test_a_session_number_alone_is_no_proof_and_is_said(node: Node):
    await end_without_record(node)
    script = "sleep 1000 > /dev/null & echo $!; sleep 1000 > /dev/null"
    async with stranger(script) as process:
        assert process.stdout is not None
        member = identity_of(int(await process.stdout.readline()))
        leader = identity_of(process.pid)
        process.kill()
        await process.wait()
        forge(node, shim=as_record(leader), at_boot_seconds=1.0)
        proof = await node.backend.sweep(ATTEMPT)
        assert member.pid in {left.pid for left in proof.left}
        assert {left.evidence for left in proof.left} == {Evidence.DOUBTFUL}
        assert (proof.clean, proof.killed) == (False, ())
        assert proc.is_alive(member)


async def test_nothing_was_started_is_a_proof_too(node: Node):
    proof = await node.backend.sweep(ATTEMPT)
    assert (proof.clean, proof.kind) == (True, ProofKind.NEVER_STARTED)
