"""A real nats-server, a real agent in a process of its own, and a desk that orders."""

import asyncio
import os
import signal
import sys
import time
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest

from trainmaster.core import subjects
from trainmaster.core.envelope import Entry
from trainmaster.core.events import Event
from trainmaster.core.facts import MemberPrepared, MemberStarted
from trainmaster.core.ids import JobId, JobKey, MemberKey, NodeKey
from trainmaster.core.messages import Assignment, Order, StartDetails
from trainmaster.core.model import Message
from trainmaster.core.spec import CheckpointSpec, JobSpec
from trainmaster.core.values import MemberSlot, RankExit
from trainmaster.launcher.agent.app import run_agent
from trainmaster.launcher.agent.settings import AgentSettings
from trainmaster.launcher.backends import proc
from trainmaster.launcher.backends.process import ProcessBackend
from trainmaster.runtime.bus import Bus, BusAddress, connect
from trainmaster.runtime.clock import pause
from trainmaster.runtime.embedded import EmbeddedNats, NatsUser
from trainmaster.runtime.log import Log
from trainmaster.runtime.permissions import agent_name, agent_permissions
from trainmaster.runtime.provision import declare_streams, deploy_folder, read_streams

WITHIN_SECONDS = 40.0
NODE = NodeKey("local", "n1")
JOB = JobKey("default", JobId("01JOB"))
ADMIN = NatsUser(name="admin", password="a", publish=(">",), subscribe=(">",))
T = TypeVar("T")


async def eventually(ask: Callable[[], Awaitable[T | None]], what: str = "it") -> T:
    """Ask until there is an answer, or fail."""
    deadline = time.monotonic() + WITHIN_SECONDS
    while True:
        found = await ask()
        if found:
            return found
        assert time.monotonic() < deadline, f"{what} did not come true in time"
        await pause(0.01)


async def text_of(path: Path) -> str:
    """Wait for a file that is not empty."""

    def read() -> str:
        return path.read_text() if path.exists() else ""

    async def ask() -> str:
        return read()

    return await eventually(ask, str(path))


def alive(pid: int) -> bool:
    """Whether a process runs."""
    stat = proc.read_stat(pid)
    return stat is not None and not stat.dead


def agent_user(node: NodeKey = NODE) -> NatsUser:
    """The agent with exactly the rights it has in production."""
    rights = agent_permissions(node)
    return NatsUser(
        name=agent_name(node),
        password="s",
        publish=rights.publish,
        subscribe=rights.subscribe,
        allow_responses=rights.answers,
    )


@dataclass(kw_only=True)
class Desk:
    """Orders like the launcher, and reads what agents said."""

    bus: Bus
    log: Log
    output: Path
    spec: JobSpec

    def slot(self, ranks: int = 1) -> MemberSlot:
        return MemberSlot(node=NODE.node, accelerators=(0,), ranks=ranks)

    def shell(self, script: str, **more: object) -> None:
        """Let the job be a shell script."""
        command = ("sh", "-c", script)
        self.spec = self.spec.model_copy(update={"command": command, **more})

    async def started(self, script: str, **more: object) -> MemberStarted:
        """Let a shell script be started."""
        self.shell(script, **more)
        await self.order(Order.PREPARE)
        await self.fact(MemberPrepared)
        await self.order(Order.START)
        return await self.fact(MemberStarted)

    async def order(
        self, order: Order, *, attempt: int = 1, job: JobKey = JOB, **more: object
    ) -> None:
        """Write one assignment."""
        start = StartDetails(
            master_address="127.0.0.1", master_port=20000, addresses=("127.0.0.1",)
        )
        assignment = Assignment(
            team=job.team,
            attempt=attempt,
            order=order,
            spec=self.spec,
            spec_digest="digest",
            slot=self.slot(self.spec.ranks_per_node),
            start=start if order is Order.START else None,
            grace_seconds=self.spec.stop_grace_seconds,
        ).model_copy(update=more)
        await self.bus.request(
            subjects.assign(NODE, job.job), assignment.to_json(), seconds=5
        )

    async def said(self, *, attempt: int = 1, job: JobKey = JOB) -> list[Event]:
        """What the agent said of one attempt, in order."""
        key = MemberKey(*NODE, job.job, attempt)
        stem = f"tm.member.{'.'.join(map(str, key))}.>"
        entries = await self.log.entries(subjects.MEMBERS, stem)
        return [entry.event for entry in entries if isinstance(entry, Entry)]

    async def fact(
        self, kind: type[T], *, attempt: int = 1, job: JobKey = JOB, count: int = 1
    ) -> T:
        """Wait for the newest fact of a kind."""

        async def ask() -> T | None:
            said = await self.said(attempt=attempt, job=job)
            found = [event for event in said if isinstance(event, kind)]
            return found[-1] if len(found) >= count else None

        return await eventually(ask, f"{kind.__name__} of attempt {attempt}")

    async def exit(self, rank: int = 0, *, attempt: int = 1) -> RankExit:
        """Wait for the end of one rank."""
        key = MemberKey(*NODE, JOB.job, attempt)

        async def ask() -> RankExit | None:
            subject = f"tm.member.{'.'.join(map(str, key))}.rank_exited.{rank}"
            found = await self.log.entries(subjects.MEMBERS, subject)
            last = found[-1].event if found and isinstance(found[-1], Entry) else None
            return getattr(last, "exit", None)

        return await eventually(ask, f"the exit of rank {rank}")

    async def stored(self, stream: str, subject: str, kind: type[T]) -> list[T]:
        """Read what telemetry was stored."""
        assert issubclass(kind, Message)
        raws = [raw async for raw in self.log.history(stream, subject)]
        return [kind.from_json(raw.body) for raw in raws]


@dataclass(kw_only=True)
class Agent:
    """One agent's process, and how it is started again."""

    server: EmbeddedNats
    root: Path
    failpoints: str = ""
    processes: list[Process] = field(default_factory=list[Process])

    @property
    def process(self) -> Process:
        return self.processes[-1]

    def settings(self) -> AgentSettings:
        """What an agent inside this process is told."""
        user = agent_user()
        return AgentSettings.model_validate(
            {
                "pool": NODE.pool,
                "node": NODE.node,
                "root": self.root,
                "fake_accelerators": 2,
                "nats_url": self.server.url,
                "nats_user": user.name,
                "nats_password": user.password,
            }
        )

    async def start(self) -> None:
        """Start it as a process of its own."""
        user = agent_user()
        environment = {
            **os.environ,
            "TM_NATS_URL": self.server.url,
            "TM_NATS_USER": user.name,
            "TM_NATS_PASSWORD": user.password,
            "TM_FAILPOINTS": self.failpoints,
        }
        command = ("-m", "trainmaster.launcher.agent", "--fake-accelerators", "2")
        named = ("--pool", NODE.pool, "--node", NODE.node, "--root", str(self.root))
        self.processes.append(
            await asyncio.create_subprocess_exec(
                sys.executable,
                *command,
                *named,
                env=environment,
                stdout=DEVNULL,
                start_new_session=True,
            )
        )

    async def kill(self) -> None:
        """End it as a crash would; its ranks go on."""
        self.process.kill()
        await self.process.wait()

    async def stop(self) -> int:
        """End it as an operator would."""
        self.process.send_signal(signal.SIGTERM)
        return await self.process.wait()


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[EmbeddedNats]:
    server = EmbeddedNats(data=tmp_path / "data", users=(ADMIN, agent_user()))
    await server.start()
    yield server
    await server.kill()


@pytest.fixture
async def desk(server: EmbeddedNats, tmp_path: Path) -> AsyncIterator[Desk]:
    address = BusAddress(url=server.url, user=ADMIN.name, password=ADMIN.password)
    bus = await connect(address, name="desk")
    await declare_streams(bus, read_streams(deploy_folder()))
    output = tmp_path / "output"
    output.mkdir()
    spec = JobSpec(
        name="train",
        command=("sh", "-c", "exit 0"),
        work_directory=str(output),
        output_directory=str(output),
        env={"OUT": str(output)},
        accelerators_per_node=1,
        stop_grace_seconds=5.0,
        checkpoint=CheckpointSpec(directory=str(output / "checkpoints")),
    )
    yield Desk(bus=bus, log=Log(bus, source="desk", epoch=1), output=output, spec=spec)
    await bus.close()


@pytest.fixture
async def agent(
    server: EmbeddedNats, desk: Desk, tmp_path: Path
) -> AsyncIterator[Agent]:
    del desk  # the streams are there
    agent = Agent(server=server, root=tmp_path / "node")
    await agent.start()
    yield agent
    if agent.process.returncode is None:
        await agent.kill()
    await nothing_left(agent)


@pytest.fixture
async def inside(
    server: EmbeddedNats, desk: Desk, tmp_path: Path
) -> AsyncIterator[Agent]:
    """An agent inside this process, as on a laptop."""
    del desk  # the streams are there
    agent = Agent(server=server, root=tmp_path / "node")
    running = asyncio.create_task(run_agent(agent.settings()))
    yield agent
    running.cancel()
    await asyncio.wait({running})
    await nothing_left(agent)
    assert running.cancelled(), running.exception()


async def nothing_left(agent: Agent) -> None:
    """End every rank a test has left."""
    backend = ProcessBackend(root=agent.root / "ranks", python=sys.executable)
    for attempt in {found.key.attempt for found in backend.find()}:
        await backend.sweep(attempt)
    backend.release()
