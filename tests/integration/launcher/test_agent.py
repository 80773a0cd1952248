"""An agent brings about what is ordered, and says what came of it."""

import asyncio
import os
import signal

import pytest
from tests.integration.launcher.conftest import (
    JOB,
    NODE,
    Agent,
    Desk,
    alive,
    eventually,
    text_of,
)

from trainmaster.core import subjects
from trainmaster.core.facts import (
    MemberClosed,
    MemberPrepared,
    MemberStarted,
    MemberStopped,
)
from trainmaster.core.messages import (
    MetricSample,
    NodeHeartbeat,
    Order,
    OutputChunk,
)
from trainmaster.core.values import RankExit
from trainmaster.launcher.backends import proc

pytestmark = pytest.mark.integration


@pytest.mark.usefixtures("inside")
async def test_a_member_is_prepared_started_and_its_exit_is_told(desk: Desk):
    desk.shell("echo rank $RANK of $WORLD_SIZE; exit $RANK", ranks_per_node=2)
    await desk.order(Order.PREPARE)
    prepared = await desk.fact(MemberPrepared)
    assert prepared.failure is None
    assert prepared.address == "127.0.0.1"
    assert 20000 <= prepared.port <= 29999
    assert prepared.versions.keys() == {"spec", "program"}
    await desk.order(Order.START)
    told = await desk.fact(MemberStarted)
    assert len(told.pids) == 2
    first, second = await desk.exit(0), await desk.exit(1)
    assert (first.code, first.last_lines) == (0, ("rank 0 of 2",))
    assert first.clean
    assert (second.code, second.node) == (1, NODE.node)


@pytest.mark.usefixtures("inside")
async def test_a_check_that_fails_names_the_field_and_starts_nothing(desk: Desk):
    desk.spec = desk.spec.model_copy(update={"command": ("no-such-trainer",)})
    await desk.order(Order.PREPARE)
    failure = (await desk.fact(MemberPrepared)).failure
    assert failure is not None
    assert (failure.check, failure.field) == ("program", "command")
    assert "no-such-trainer" in failure.seen


@pytest.mark.usefixtures("inside")
async def test_a_start_that_was_never_prepared_here_is_refused(desk: Desk):
    desk.shell("touch $OUT/ran")
    await desk.order(Order.START)
    told = await desk.fact(MemberStarted)
    assert told.failure is not None
    assert told.failure.field == "prepared"
    assert not (desk.output / "ran").exists()


@pytest.mark.usefixtures("inside")
async def test_a_stop_goes_through_the_ladder_and_a_close_proves_it(desk: Desk):
    (pid,) = (
        await desk.started("trap 'echo saved; exit 0' TERM; echo up; sleep 9 & wait")
    ).pids
    await text_of(desk.output / "logs/attempt-1/rank-0.log")
    await desk.order(Order.STOP)
    await desk.fact(MemberStopped)
    told = await desk.exit()
    assert (told.code, told.by_us, told.clean) == (0, True, False)
    assert told.last_lines == ("up", "saved")
    await desk.order(Order.CLOSE)
    proof = (await desk.fact(MemberClosed)).proof
    assert (proof.how, proof.node) == ("swept", NODE.node)
    assert not alive(pid)


@pytest.mark.usefixtures("inside")
async def test_a_close_leaves_nothing_not_even_a_grandchild_in_its_own_session(
    desk: Desk,
):
    script = "setsid sh -c 'setsid sleep 600 & echo $! > $OUT/pid' & wait; sleep 600"
    await desk.started(script, stop_grace_seconds=0.0)
    pid = int(await text_of(desk.output / "pid"))
    assert alive(pid)
    await desk.order(Order.CLOSE)
    proof = (await desk.fact(MemberClosed)).proof
    assert proof.how == "swept"
    assert not alive(pid)
    assert (await desk.exit()).by_us


@pytest.mark.usefixtures("inside")
async def test_a_closed_attempt_never_starts_and_answers_again(desk: Desk):
    desk.shell("touch $OUT/ran")
    await desk.order(Order.CLOSE)
    first = await desk.fact(MemberClosed)
    assert first.proof.how == "never_started"
    await desk.order(Order.START)
    await desk.order(Order.CLOSE, attempt=2)
    await desk.fact(MemberClosed, attempt=2)
    await desk.order(Order.CLOSE)
    assert await desk.fact(MemberClosed) == first
    assert not (desk.output / "ran").exists()


@pytest.mark.usefixtures("inside")
async def test_what_cannot_be_read_is_no_order(desk: Desk):
    for subject in (f"tm.assign.local.n1.{JOB.job}", "tm.assign.local.n1.a.b"):
        await desk.bus.request(subject, b'{"attempt": "x"}', seconds=5)
    await desk.order(Order.UNSPECIFIED)
    assert (await desk.started("exit 0")).pids


@pytest.mark.usefixtures("inside")
async def test_a_higher_attempt_closes_the_lower_one_first(desk: Desk):
    (pid,) = (await desk.started("sleep 600")).pids
    desk.shell("exit 0")
    await desk.order(Order.PREPARE, attempt=2)
    await desk.fact(MemberPrepared, attempt=2)
    assert (await desk.fact(MemberClosed, attempt=1)).proof.how == "swept"
    assert not alive(pid)


@pytest.mark.usefixtures("inside")
async def test_a_lower_order_is_ignored(desk: Desk):
    desk.shell("touch $OUT/ran; sleep 600")
    await desk.order(Order.PREPARE, attempt=2)
    await desk.fact(MemberPrepared, attempt=2)
    await desk.order(Order.START, attempt=1)
    await desk.order(Order.START, attempt=2)
    await desk.fact(MemberStarted, attempt=2)
    assert await desk.said(attempt=1) == []


@pytest.mark.usefixtures("inside")
async def test_a_close_interrupts_a_stop_with_a_long_grace(desk: Desk):
    (pid,) = (
        await desk.started("trap '' TERM; echo up; while :; do sleep 9; done")
    ).pids
    await text_of(desk.output / "logs/attempt-1/rank-0.log")
    await desk.order(Order.STOP, grace_seconds=600.0)
    await desk.order(Order.CLOSE, grace_seconds=0.1)
    await desk.fact(MemberClosed)
    assert not alive(pid)


@pytest.mark.usefixtures("inside")
async def test_output_and_metrics_are_streamed_with_their_offsets(desk: Desk):
    script = (
        'echo \'{"step": 3, "loss": "nan", "t": 1.5}\' >> $TM_METRICS_FILE;'
        " printf 'h\\303'; sleep 0.3; printf '\\244llo\\n'; echo end"
    )
    await desk.started(script)
    await desk.exit()
    subject = subjects.output(JOB, 1, 0)

    async def whole() -> list[OutputChunk] | None:
        chunks = await desk.stored(subjects.OUTPUT, subject, OutputChunk)
        return chunks if "".join(c.text for c in chunks) == "hällo\nend\n" else None

    chunks = await eventually(whole, "the output")
    sizes = [len(chunk.text.encode()) for chunk in chunks]
    assert [c.offset for c in chunks] == [sum(sizes[:i]) for i in range(len(sizes))]
    (sample,) = await desk.stored(
        subjects.METRICS, subjects.metric(JOB, 1, 0), MetricSample
    )
    assert sample.step == 3
    assert str(sample.values) == "{'loss': nan}"


@pytest.mark.usefixtures("inside")
async def test_a_node_says_every_second_what_it_has(desk: Desk):
    async def beat() -> NodeHeartbeat | None:
        found = await desk.stored(
            subjects.STATUS, subjects.heartbeat(NODE), NodeHeartbeat
        )
        return found[-1] if found else None

    heartbeat = await eventually(beat, "a heartbeat")
    assert heartbeat.capacity.accelerators == 2
    assert heartbeat.capacity.cpus == os.cpu_count()
    assert heartbeat.boot_id == proc.boot_id()
    assert heartbeat.facts.keys() >= {"host", "kernel", "boot"}


async def test_a_second_agent_of_the_same_directory_is_refused(
    inside: Agent, desk: Desk
):
    await desk.started("exit 0")
    second = Agent(server=inside.server, root=inside.root)
    await second.start()
    async with asyncio.timeout(30):
        assert await second.process.wait() == 1


async def test_an_agent_that_is_told_to_stop_leaves_its_ranks(agent: Agent, desk: Desk):
    (pid,) = (await desk.started("sleep 600")).pids
    assert await agent.stop() == 0
    assert alive(pid)
    os.kill(pid, signal.SIGKILL)
    await agent.start()
    told: RankExit = await desk.exit()
    assert (told.signal, told.by_us) == (signal.SIGKILL, False)
