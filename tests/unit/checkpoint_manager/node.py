"""A node that answers questions about its disk, as its agent does."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from blake3 import blake3
from nats.aio.msg import Msg

from trainmaster.core import subjects
from trainmaster.core.ids import NodeKey
from trainmaster.core.messages import (
    AsideReply,
    AsideRequest,
    ScannedCheckpoint,
    ScanReply,
    ScanRequest,
)
from trainmaster.core.values import Rejected
from trainmaster.runtime.clock import wall
from trainmaster.runtime.permissions import agent_name
from trainmaster.testkit.servers import Stack

ASIDE = ".tm-aside"


def save(directory: Path, step: int, *, content: str = "weights") -> Path:
    """Save a checkpoint whole: here its content is one file that says its size."""
    path = directory / f"step-{step:06d}"
    path.mkdir(parents=True, exist_ok=True)
    (path / "weights.npy").write_text(content)
    (path / "size").write_text(str(len(content)))
    return path


def tear(path: Path) -> None:
    """Lose the second half of the weights, as a crash while saving does."""
    weights = path / "weights.npy"
    content = weights.read_text()
    weights.write_text(content[: len(content) // 2])


def look(directory: Path) -> tuple[ScannedCheckpoint, ...]:
    """Find the checkpoints below a directory and judge them by content."""
    found = sorted(directory.glob("step-*")) if directory.exists() else []
    return tuple(map(_judge, found))


def saved_at(path: Path) -> datetime:
    return datetime.fromtimestamp((path / "size").stat().st_mtime, UTC)


def _judge(path: Path) -> ScannedCheckpoint:
    step = int(path.name.removeprefix("step-"))
    content = (path / "weights.npy").read_bytes()
    expected = int((path / "size").read_text())
    problem = f"weights.npy has {len(content):,} of {expected:,} bytes"
    whole = len(content) == expected
    return ScannedCheckpoint(
        path=str(path),
        step=step,
        format="test",
        files=2,
        bytes=len(content),
        digest=blake3(content).hexdigest() if whole else "",
        problem="" if whole else problem,
    )


@dataclass(kw_only=True)
class Node:
    """An agent's side of the questions. `deaf` swallows them, `error` cannot look.

    Its clock is `ahead` of everybody's.
    """

    key: NodeKey
    ahead: timedelta = timedelta()
    deaf: bool = False
    error: str = ""
    garbage: bool = False
    scans: list[ScanRequest] = field(default_factory=list[ScanRequest])
    asides: list[AsideRequest] = field(default_factory=list[AsideRequest])
    unheard: list[Msg] = field(default_factory=list[Msg])
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def scan(self, message: Msg) -> None:
        request = ScanRequest.from_json(message.data)
        self.scans.append(request)
        self.asked.set()
        if self.deaf:
            self.unheard.append(message)
            return
        await self._answer(message, request)

    async def hear_again(self) -> None:
        """Answer what was not heard, late, and everything from now on."""
        self.deaf = False
        for message in self.unheard:
            await self._answer(message, ScanRequest.from_json(message.data))

    async def _answer(self, message: Msg, request: ScanRequest) -> None:
        reply = (
            ScanReply(error=self.error)
            if self.error
            else self._look(Path(request.directory))
        )
        await message.respond(b"[]" if self.garbage else reply.to_json())

    def _look(self, directory: Path) -> ScanReply:
        found = tuple(
            c.model_copy(update={"saved_at": saved_at(Path(c.path)) + self.ahead})
            for c in look(directory)
        )
        return ScanReply(checkpoints=found, at=wall() + self.ahead)

    async def aside(self, message: Msg) -> None:
        request = AsideRequest.from_json(message.data)
        self.asides.append(request)
        if self.deaf:
            return
        moved = tuple(self._move(Path(request.directory), p) for p in request.paths)
        await message.respond(AsideReply(moved=moved).to_json())

    def _move(self, directory: Path, path: str) -> Rejected:
        target = directory / ASIDE / Path(path).name
        target.parent.mkdir(exist_ok=True)
        Path(path).rename(target)
        return Rejected(path=path, moved_to=str(target))


@asynccontextmanager
async def answering(servers: Stack, key: NodeKey) -> AsyncGenerator[Node]:
    """Let a node answer, with the rights of its agent."""
    bus = await servers.connect(agent_name(key))
    node = Node(key=key)
    try:
        await bus.subscribe(subjects.ask(key, "scan"), node.scan)
        await bus.subscribe(subjects.ask(key, "aside"), node.aside)
        await bus.client.flush()
        yield node
    finally:
        await bus.close()
