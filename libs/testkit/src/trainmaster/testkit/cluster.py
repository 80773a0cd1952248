"""A real Trainmaster for tests: real servers, every service and agent a process.

Each can be killed, frozen and started again by itself; afterwards the whole log is read
and held to the rules. Slow parts are told to be impatient.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx

from trainmaster.core.envelope import Entry, decode
from trainmaster.core.ids import NodeKey
from trainmaster.runtime.clock import pause
from trainmaster.runtime.log import Log
from trainmaster.runtime.settings import Settings
from trainmaster.runtime.stack import Options, Stack
from trainmaster.testkit.rules import check_history, check_settled

SERVICES: Final = (
    "submission",
    "scheduler",
    "launcher",
    "monitor",
    "checkpoint-manager",
    "reaper",
    "console",
)
IMPATIENT: Final[Mapping[str, str]] = {
    "TM_REAPER_NODE_LOST_SECONDS": "4",
    "TM_REAPER_PROOF_SECONDS": "6",
    "TM_REAPER_PREPARE_SECONDS": "20",
    "TM_REAPER_START_SECONDS": "20",
    "TM_REAPER_STOP_MARGIN_SECONDS": "6",
}
_READY_SECONDS: Final = 60.0
_FINAL: Final = frozenset({"succeeded", "failed", "cancelled"})


async def until(
    what: str, is_so: Callable[[], Any], *, seconds: float = _READY_SECONDS
) -> Any:
    """Wait until something is so and return it; fails with what was waited for."""
    end = time.monotonic() + seconds
    while True:
        found = is_so()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds:g} s: {what}")
        await pause(0.02)


class Cluster:
    """All processes of one data directory."""

    def __init__(self, data: Path, *, nodes: int = 1, accelerators: int = 2) -> None:
        self.options = Options(data=data, nodes=nodes, fake_accelerators=accelerators)
        self.stack = Stack(self.options)
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._ports: dict[str, int] = {}
        self._logs = data / "logs"
        self._logs.mkdir()

    # ------------------------------------------------------------------ processes

    async def start(self) -> None:
        """Start everything and wait until it is ready."""
        await self.stack.start()
        for name in SERVICES:
            self.start_service(name)
        for key in self.options.node_keys:
            self.start_agent(key.node)
        await until("all services ready", self.all_ready)
        await until("all nodes registered", self._all_registered)

    def start_service(self, name: str, *, failpoints: str = "", copy: str = "") -> None:
        """Start one service, or another replica of it."""
        port = _free_port()
        if not copy:
            self._ports[name] = port
        environment = {
            **_environment_of(self.stack.settings(name, port=port)),
            **IMPATIENT,
            "TM_FAILPOINTS": failpoints,
        }
        module = f"trainmaster.{name.replace('-', '_')}"
        self._spawn(name + copy, ["-m", module], environment)

    def start_agent(self, node: str) -> None:
        """Start one node's agent."""
        told = self.stack.agent_settings(NodeKey("local", node))
        environment = {f"TM_{k.upper()}": str(v) for k, v in told.items()}
        self._spawn(f"agent-{node}", ["-m", "trainmaster.launcher.agent"], environment)

    def signal(self, name: str, signum: signal.Signals) -> None:
        """Send a signal to one process."""
        os.kill(self.processes[name].pid, signum)

    def kill(self, name: str) -> None:
        """End one process as a crash would."""
        self.processes[name].kill()
        self.processes[name].wait()

    async def died(self, name: str, *, seconds: float = _READY_SECONDS) -> None:
        """Wait until a process has ended by itself, at its failpoint."""
        await until(
            f"{name} dies",
            lambda: self.processes[name].poll() is not None,
            seconds=seconds,
        )

    async def stop(self) -> None:
        """End all processes and servers, and whatever ran under shims."""
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
        for process in self.processes.values():
            try:
                await asyncio.to_thread(process.wait, 5)
            except subprocess.TimeoutExpired:
                process.kill()
        await self.stack.stop()
        await self.stack.postgres.remove()

    # ------------------------------------------------------------------ use

    def ask(self, method: str, path: str, **kwargs: Any) -> httpx.Response:
        """Ask the submission service or the console, whichever answers `path`."""
        service = "console" if method == "GET" else "submission"
        token = self.stack.secret("admin-token")
        return httpx.request(
            method,
            f"http://127.0.0.1:{self._ports[service]}/api/v1{path}",
            headers={"Authorization": f"Bearer {token}", **kwargs.pop("headers", {})},
            timeout=30,
            **kwargs,
        )

    def submit(self, key: str, **spec: Any) -> str:
        """Submit a job until it is accepted; returns its id."""
        body = {"name": key, **spec}
        answer = self.ask("POST", "/jobs", json=body, headers={"Idempotency-Key": key})
        answer.raise_for_status()
        job: str = answer.json()["job"]
        return job

    def change(self, job: str, verb: str) -> httpx.Response:
        """Cancel, hold or release a job."""
        return self.ask("POST", f"/jobs/default/{job}/{verb}", json={})

    def job(self, job: str) -> dict[str, Any]:
        """Read what the console knows of a job; {} when it does not know it."""
        answer = self.ask("GET", f"/jobs/{job}")
        found: dict[str, Any] = answer.json() if answer.is_success else {}
        return found

    def state(self, job: str) -> str:
        """Read a job's state."""
        return str(self.job(job).get("state", ""))

    async def final(self, job: str, *, seconds: float = 60.0) -> str:
        """Wait until a job is over; returns how."""
        await until(
            f"job {job} is over ({self.state(job)})",
            lambda: self.state(job) in _FINAL,
            seconds=seconds,
        )
        return self.state(job)

    async def reaches(self, job: str, state: str, *, seconds: float = 30.0) -> None:
        """Wait until a job is in a state."""
        await until(
            f"job {job} is {state}", lambda: self.state(job) == state, seconds=seconds
        )

    async def entries(self) -> list[Entry]:
        """Read the whole log."""
        bus = await self.stack.provisioner()
        try:
            log = Log(bus, source="test", epoch=1)
            raws = [
                raw
                for stream in ("TEAMS", "NODES", "MEMBERS", "JOBS")
                async for raw in log.history(stream, ">")
            ]
        finally:
            await bus.close()
        raws.sort(key=lambda raw: (raw.time, raw.stream == "JOBS", raw.seq))
        return [e for e in map(decode, raws) if isinstance(e, Entry)]

    async def broken_rules(
        self, *, accepted: Sequence[str] = (), settled: bool = True
    ) -> list[str]:
        """Hold the whole log to the rules of a job's life."""
        entries = await self.entries()
        found = check_history(entries)
        if settled:
            found += check_settled(entries, accepted=accepted)
        return found

    def all_ready(self) -> bool:
        """Tell whether every service says that it is ready."""
        return all(self.is_ready(name) for name in SERVICES)

    def is_ready(self, name: str) -> bool:
        """Tell whether one service says that it is ready."""
        if self.processes[name].poll() is not None:
            raise AssertionError(f"{name} has ended: {self.log_of(name)}")
        try:
            port = self._ports[name]
            answer = httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=5)
        except httpx.TransportError:
            return False
        return answer.is_success

    def log_of(self, name: str, *, lines: int = 20) -> str:
        """Read the end of what a process logged."""
        text = (self._logs / f"{name}.log").read_text(errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    def _all_registered(self) -> bool:
        answer = self.ask("GET", "/nodes")
        nodes: list[Any] = answer.json()["nodes"] if answer.is_success else []
        return len(nodes) == self.options.nodes

    def _spawn(
        self, name: str, arguments: Sequence[str], environment: Mapping[str, str]
    ) -> None:
        with (self._logs / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, *arguments],
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )


def _environment_of(settings: Settings) -> dict[str, str]:
    raw = json.loads(settings.model_dump_json())
    secret = {
        "nats_password": settings.nats_password,
        "database_url": settings.database_url,
        "admin_token": settings.admin_token,
    }
    raw.update({name: value.get_secret_value() for name, value in secret.items()})
    return {f"TM_{name.upper()}": str(value) for name, value in raw.items()}


def _free_port() -> int:
    import socket  # noqa: PLC0415 used here only

    with socket.socket() as candidate:
        candidate.bind(("127.0.0.1", 0))
        return int(candidate.getsockname()[1])


@asynccontextmanager
async def cluster(
    data: Path, *, nodes: int = 1, accelerators: int = 2
) -> AsyncGenerator[Cluster]:
    """Run a cluster for the length of a test."""
    running = Cluster(data, nodes=nodes, accelerators=accelerators)
    try:
        await running.start()
        yield running
    finally:
        await running.stop()
