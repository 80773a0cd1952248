"""An agent that is killed, cut off or rebooted loses nothing and kills nothing."""

import json
import os
import signal
from pathlib import Path

import pytest
from tests.integration.launcher.conftest import (
    JOB,
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
    RankExited,
)
from trainmaster.core.messages import Order, OutputChunk
from trainmaster.runtime.embedded import EmbeddedNats

pytestmark = pytest.mark.integration

WAIT_FOR_GO = "echo up > $OUT/up; until [ -e $OUT/go ]; do sleep 0.01; done; exit 7"


def record_of(agent: Agent, attempt: int = 1) -> Path:
    return agent.root / "members" / JOB.job / str(attempt) / "member.json"


async def test_a_killed_agent_finds_its_ranks_again(agent: Agent, desk: Desk):
    (pid,) = (await desk.started(WAIT_FOR_GO)).pids
    await text_of(desk.output / "up")
    await agent.kill()
    await agent.start()
    assert alive(pid)
    (desk.output / "go").touch()
    told = await desk.exit()
    assert (told.code, told.unknown, told.by_us) == (7, False, False)
    pids = {e.pids for e in await desk.said() if isinstance(e, MemberStarted)}
    assert pids == {(pid,)}


async def test_a_rank_that_ended_while_no_agent_was_there_is_told(
    agent: Agent, desk: Desk
):
    (pid,) = (await desk.started("echo up > $OUT/up; sleep 600")).pids
    await text_of(desk.output / "up")
    await agent.kill()
    os.kill(pid, signal.SIGKILL)
    await agent.start()
    told = await desk.exit()
    assert (told.signal, told.by_us) == (signal.SIGKILL, False)


async def test_an_agent_killed_in_the_middle_of_a_start_finishes_it(
    agent: Agent, desk: Desk
):
    await agent.kill()
    agent.failpoints = "process.after_spawn=kill@2"
    await agent.start()
    desk.shell("echo $RANK >> $OUT/starts; sleep 600", ranks_per_node=4)
    await desk.order(Order.PREPARE)
    await desk.fact(MemberPrepared)
    await desk.order(Order.START)
    assert await agent.process.wait() == -signal.SIGKILL
    agent.failpoints = ""
    await agent.start()
    assert len((await desk.fact(MemberStarted)).pids) == 4

    async def starts() -> list[str] | None:
        lines = sorted((desk.output / "starts").read_text().split())
        return lines if len(lines) >= 4 else None

    assert await eventually(starts, "four starts") == ["0", "1", "2", "3"]


async def test_a_stop_is_finished_by_the_next_agent(agent: Agent, desk: Desk):
    script = "trap '' TERM; echo up > $OUT/up; while :; do sleep 1; done"
    (pid,) = (await desk.started(script)).pids
    await text_of(desk.output / "up")
    await desk.order(Order.STOP, grace_seconds=600.0)
    await agent.kill()
    await desk.order(Order.STOP, grace_seconds=0.2)
    await agent.start()
    await desk.fact(MemberStopped)
    assert not alive(pid)


async def test_what_was_closed_stays_closed_for_the_next_agent(
    agent: Agent, desk: Desk
):
    await desk.started("echo x >> $OUT/starts; sleep 600", stop_grace_seconds=0.0)
    await text_of(desk.output / "starts")
    await desk.order(Order.CLOSE)
    first = await desk.fact(MemberClosed)
    await agent.kill()
    await desk.order(Order.START)
    await agent.start()
    await desk.order(Order.CLOSE, attempt=2)
    await desk.fact(MemberClosed, attempt=2)
    assert (desk.output / "starts").read_text() == "x\n"
    assert await desk.fact(MemberClosed) == first


async def test_a_reboot_closes_everything_the_node_had(agent: Agent, desk: Desk):
    await desk.started("sleep 600")
    await agent.kill()
    path = record_of(agent)
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "boot_id": "another-boot"}))
    await agent.start()
    proof = (await desk.fact(MemberClosed)).proof
    assert proof.how == "boot_id"
    assert "another-boot" in proof.detail
    told = [event for event in await desk.said() if isinstance(event, RankExited)]
    assert told == []


async def test_ranks_are_untouched_while_nats_is_away_and_facts_arrive_after_it(
    agent: Agent, desk: Desk, server: EmbeddedNats
):
    del agent
    script = f"{WAIT_FOR_GO.removesuffix('; exit 7')}; echo late; exit 7"
    (pid,) = (await desk.started(script)).pids
    await text_of(desk.output / "up")
    await server.kill()
    assert alive(pid)
    (desk.output / "go").touch()

    async def over() -> bool:
        return not alive(pid)

    await eventually(over, "the end of the rank")
    await server.start()
    told = await desk.exit()
    assert (told.code, told.by_us) == (7, False)
    assert told.last_lines == ("late",)

    async def output() -> bool:
        chunks = await desk.stored(
            subjects.OUTPUT, subjects.output(JOB, 1, 0), OutputChunk
        )
        return "late\n" in {chunk.text for chunk in chunks}

    assert await eventually(output, "the output")


async def test_orders_given_while_nats_was_away_are_carried_out_after_it(
    agent: Agent, desk: Desk, server: EmbeddedNats
):
    del agent
    (pid,) = (await desk.started("sleep 600", stop_grace_seconds=0.0)).pids
    await server.kill()
    await server.start()
    await desk.order(Order.CLOSE)
    await desk.fact(MemberClosed)
    assert not alive(pid)


@pytest.mark.parametrize("restarted", [False, True])
async def test_an_emptied_assign_kills_nothing(
    agent: Agent, desk: Desk, *, restarted: bool
):
    (pid,) = (await desk.started(WAIT_FOR_GO)).pids
    await text_of(desk.output / "up")
    await desk.bus.ask_api(f"STREAM.PURGE.{subjects.ASSIGN}", {})
    if restarted:
        await agent.kill()
        await agent.start()
    await desk.order(Order.CLOSE, job=JOB._replace(job=type(JOB.job)("other")))
    await desk.fact(MemberClosed, job=JOB._replace(job=type(JOB.job)("other")))
    assert alive(pid)
    (desk.output / "go").touch()
    assert (await desk.exit()).code == 7


async def test_a_stream_of_assignments_made_anew_is_read_from_its_beginning(
    agent: Agent, desk: Desk
):
    del agent
    (pid,) = (await desk.started("sleep 600", stop_grace_seconds=0.0)).pids
    config = (await desk.bus.ask_api(f"STREAM.INFO.{subjects.ASSIGN}", {}))["config"]
    await desk.bus.ask_api(f"STREAM.DELETE.{subjects.ASSIGN}", {})
    await desk.bus.ask_api(f"STREAM.CREATE.{subjects.ASSIGN}", config)
    await desk.order(Order.CLOSE)
    await desk.fact(MemberClosed)
    assert not alive(pid)
