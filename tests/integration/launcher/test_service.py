"""The launcher and two agents on real servers, with exactly the rights they have."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.integration.launcher.conftest import eventually

from trainmaster.core import subjects
from trainmaster.core.decision import Write
from trainmaster.core.envelope import Entry
from trainmaster.core.events import AttemptEnded, AttemptReclaimed, Event, Submitted
from trainmaster.core.facts import MemberClosed
from trainmaster.core.ids import JobId, JobKey
from trainmaster.core.messages import Assignment
from trainmaster.core.spec import JobSpec
from trainmaster.core.values import Cause
from trainmaster.launcher.agent.app import run_local
from trainmaster.launcher.app import build
from trainmaster.launcher.backends.process import ProcessBackend
from trainmaster.runtime.heads import Heads
from trainmaster.runtime.service import Env, Running, open_env
from trainmaster.runtime.stack import Stack
from trainmaster.testkit.builders import WORDS, a_placed

pytestmark = pytest.mark.integration

JOB = JobKey("default", JobId("01JOB"))


@dataclass(kw_only=True)
class Office:
    """All services but the launcher, by hand."""

    stack: Stack
    envs: dict[str, Env]
    output: Path

    async def append(self, event: Event) -> None:
        """Append one event as its publisher, on what is there."""
        env, heads = self.envs[event.publisher], Heads()
        for entry in await env.log.entries(subjects.JOBS, ">"):
            heads.observe(entry)
        write = Write(key=JOB, event=event)
        assert (await env.log.append([(write,)], heads)).whole

    async def submit(self, script: str) -> None:
        """Submit a job of two nodes with two ranks each, and place it."""
        spec = JobSpec(
            name="train",
            command=("sh", "-c", script),
            work_directory=str(self.output),
            output_directory=str(self.output),
            env={"OUT": str(self.output)},
            nodes=2,
            ranks_per_node=2,
            stop_grace_seconds=1.0,
        )
        await self.append(Submitted(spec=spec, spec_digest="d"))
        await self.append(a_placed(spec=spec))

    async def event(self, kind: type[Event]) -> Event:
        """Wait for an event of the job."""
        log = self.envs["reaper"].log

        async def ask() -> Event | None:
            found = await log.entries(subjects.JOBS, "tm.job.>")
            events = [e.event for e in found if isinstance(e, Entry)]
            return next((e for e in events if isinstance(e, kind)), None)

        return await eventually(ask, kind.__name__)

    async def kinds(self) -> list[str]:
        found = await self.envs["reaper"].log.entries(subjects.JOBS, "tm.job.>")
        return [e.event.kind for e in found if isinstance(e, Entry)]

    async def closed(self) -> list[MemberClosed]:
        """Wait until both nodes have proven that nothing is left."""
        log = self.envs["reaper"].log

        async def ask() -> list[MemberClosed] | None:
            found = await log.entries(subjects.MEMBERS, "tm.member.>")
            events = [e.event for e in found if isinstance(e, Entry)]
            proofs = [e for e in events if isinstance(e, MemberClosed)]
            return proofs if len(proofs) == 2 else None

        return await eventually(ask, "two proofs")

    async def assigned(self) -> list[Assignment]:
        bus = await self.stack.provisioner()
        try:
            log = type(self.envs["reaper"].log)(bus, source="test", epoch=1)
            raws = [raw async for raw in log.last_values(subjects.ASSIGN, ">")]
        finally:
            await bus.close()
        return [Assignment.from_json(raw.body) for raw in raws]


@pytest.fixture
async def office(stack: Stack, tmp_path: Path) -> AsyncGenerator[Office]:
    envs = {
        name: await open_env(name, stack.settings(name, port=0))
        for name in ("submission", "scheduler", "reaper")
    }
    told = [
        {**stack.agent_settings(key), "root": tmp_path / key.node}
        for key in stack.options.node_keys
    ]
    agents = [asyncio.create_task(run_local(each)) for each in told]
    yield Office(stack=stack, envs=envs, output=tmp_path)
    for agent in agents:
        agent.cancel()
    await asyncio.wait(agents)
    for key in stack.options.node_keys:
        root = tmp_path / key.node / "ranks"
        backend = ProcessBackend(root=root, python=sys.executable)
        for attempt in {found.key.attempt for found in backend.find()}:
            await backend.sweep(attempt)
        backend.release()
    for env in envs.values():
        await env.bus.close()


@asynccontextmanager
async def launcher(stack: Stack) -> AsyncGenerator[None]:
    """Run the launcher until the block is left, then end it as a crash would."""
    env = await open_env("launcher", stack.settings("launcher", port=0))
    running = asyncio.create_task(Running(env, build(env)).run())
    try:
        yield
    finally:
        running.cancel()
        await asyncio.wait({running})
        await env.bus.close()
        await env.database.close()


async def test_a_gang_is_prepared_started_ended_and_closed(
    stack: Stack, office: Office
):
    async with launcher(stack):
        await office.submit("echo $RANK of $WORLD_SIZE at $MASTER_ADDR:$MASTER_PORT")
        ended = await office.event(AttemptEnded)
        assert isinstance(ended, AttemptEnded)
        assert (ended.cause, ended.reason) == (Cause.COMPLETED, "all ranks exited 0")
        assert [exit_.rank for exit_ in ended.exits] == [0, 1, 2, 3]
        assert await office.kinds() == [
            "submitted",
            "attempt_placed",
            "start_ordered",
            "attempt_started",
            "attempt_ended",
        ]
        proofs = tuple(fact.proof for fact in await office.closed())
        assert {proof.how for proof in proofs} == {"swept"}
        nodes = tuple(proof.node for proof in proofs)
        await office.append(AttemptReclaimed(attempt=1, nodes=nodes, proofs=proofs))

        async def nothing_assigned() -> bool:
            return not await office.assigned()

        assert await eventually(nothing_assigned, "an empty ASSIGN")
    lines = [
        (office.output / f"logs/attempt-1/rank-{rank}.log").read_text()
        for rank in range(4)
    ]
    assert [line.split(" at ")[0] for line in lines] == [f"{r} of 4" for r in range(4)]
    assert len({line.split(" at ")[1] for line in lines}) == 1


async def test_a_rank_that_fails_takes_the_others_with_it(stack: Stack, office: Office):
    async with launcher(stack):
        await office.submit("if [ $RANK = 2 ]; then echo boom; exit 5; fi; sleep 600")
        ended = await office.event(AttemptEnded)
        assert isinstance(ended, AttemptEnded)
        assert (ended.cause, ended.node) == (Cause.RANK_FAILED, "n2")
        assert ended.first is not None
        assert (ended.first.code, ended.first.last_lines) == (5, ("boom",))
        assert len(await office.closed()) == 2


async def test_a_cancel_is_carried_out_by_a_launcher_that_came_later(
    stack: Stack, office: Office
):
    script = "touch $OUT/up-$RANK; sleep 600"

    def up() -> int:
        return len(list(office.output.glob("up-*")))

    async def all_up() -> bool:
        return up() == 4

    async with launcher(stack):
        await office.submit(script)
        assert await eventually(all_up, "four ranks")
    await office.append(WORDS["cancel"](None))  # pyright: ignore[reportArgumentType] - it looks at nothing
    async with launcher(stack):
        ended = await office.event(AttemptEnded)
        assert isinstance(ended, AttemptEnded)
        assert ended.cause is Cause.CANCELLED
        assert [exit_.by_us for exit_ in ended.exits] == [True] * 4
        assert len(await office.closed()) == 2


async def test_what_cannot_be_prepared_starts_nowhere(stack: Stack, office: Office):
    async with launcher(stack):
        office.output = office.output / "missing"
        await office.submit("touch $OUT/ran")
        ended = await office.event(AttemptEnded)
        assert isinstance(ended, AttemptEnded)
        assert ended.cause is Cause.PREPARE_FAILED
        assert "work_directory" in ended.reason
        proofs = await office.closed()
        assert {fact.proof.how for fact in proofs} == {"never_started"}
    assert not office.output.exists()
