"""A real Trainmaster for tests: real servers, every service and agent a process.

Each can be killed, frozen and started again by itself; afterwards the whole log is read
and held to the rules. Slow parts are told to be impatient.
"""

import asyncio
import inspect
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx

from trainmaster.core.envelope import Entry, decode
from trainmaster.core.errors import UnreachableError
from trainmaster.core.ids import JobId, JobKey, NodeKey
from trainmaster.core.jobs import Jobs
from trainmaster.core.record import FINAL, Job
from trainmaster.runtime.bus import Bus
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
    # well below the limits above: an absence must be noticed before a limit falls due
    "TM_REAPER_SERVICE_SILENT_SECONDS": "3",
}
_READY_SECONDS: Final = 60.0


async def until(
    what: str, is_so: Callable[[], Any], *, seconds: float = _READY_SECONDS
) -> Any:
    """Wait until something is so and return it; fails with what was waited for."""
    end = time.monotonic() + seconds
    while True:
        found = is_so()
        if inspect.isawaitable(found):
            found = await found
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
        self.ports: dict[str, int] = {}
        self._bus: Bus | None = None
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
            self.ports[name] = port
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
        process = self.processes[name]
        await until(f"{name} dies", lambda: process.poll() is not None, seconds=seconds)

    async def stop(self) -> None:
        """End all processes and servers."""
        if self._bus is not None:
            await self._bus.close()
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
        usual = "console" if method == "GET" else "submission"
        port = self.ports[kwargs.pop("service", usual)]
        token = self.stack.secret("admin-token")
        return httpx.request(
            method,
            f"http://127.0.0.1:{port}/api/v1{path}",
            headers={"Authorization": f"Bearer {token}", **kwargs.pop("headers", {})},
            timeout=30,
            **kwargs,
        )

    def submit(self, key: str, **spec: Any) -> str:
        """Submit a job until it is accepted; returns its id."""
        body = {"name": key, **spec}
        answer = self.ask("POST", "/jobs", json=body, headers={"Idempotency-Key": key})
        answer.raise_for_status()
        return str(answer.json()["job"])

    def change(self, job: str, verb: str) -> httpx.Response:
        """Cancel, hold or release a job."""
        return self.ask("POST", f"/jobs/default/{job}/{verb}", json={})

    async def job(self, job: str) -> Job:
        """Fold a job from the log; a new one when the log cannot be read just now."""
        key = JobKey("default", JobId(job))
        jobs = Jobs()
        last = Job(key=key)
        try:
            entries = await (await self.log()).entries(
                "JOBS", f"tm.job.default.{job}.>"
            )
        except UnreachableError:
            return last
        for entry in entries:
            outcome = jobs.fold(entry) if isinstance(entry, Entry) else None
            last = outcome if isinstance(outcome, Job) else last
        return last

    async def final(self, job: str, *, seconds: float = 60.0) -> str:
        """Wait until a job is over; returns how."""

        async def over() -> str:
            found = await self.job(job)
            return found.state if found.state in FINAL else ""

        return str(await until(f"job {job} is over", over, seconds=seconds))

    async def reaches(self, job: str, *states: str, seconds: float = 30.0) -> Job:
        """Wait until a job is in one of some states."""

        async def there() -> Job | None:
            found = await self.job(job)
            return found if found.state in states else None

        found: Job = await until(f"job {job} is {states}", there, seconds=seconds)
        return found

    async def log(self) -> Log:
        """Give the log as the provisioner may read it, connected once."""
        if self._bus is None:
            self._bus = await self.stack.provisioner()
        return Log(self._bus, source="test", epoch=1)

    async def entries(self) -> list[Entry]:
        """Read the whole log, in the order of time."""
        log = await self.log()
        raws = [
            raw
            for stream in ("TEAMS", "NODES", "MEMBERS", "JOBS")
            async for raw in log.history(stream, ">")
        ]
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
        """Tell whether one service says so."""
        if self.processes[name].poll() is not None:
            raise AssertionError(f"{name} has ended: {self.log_of(name)}")
        url = f"http://127.0.0.1:{self.ports[name]}/readyz"
        try:
            return httpx.get(url, timeout=5).is_success
        except httpx.TransportError:
            return False

    def log_of(self, name: str, *, lines: int = 20) -> str:
        """Read the end of what a process logged."""
        text = (self._logs / f"{name}.log").read_text(errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    async def _all_registered(self) -> bool:
        found = await (await self.log()).entries("NODES", "tm.node.>")
        return len({entry.key for entry in found if isinstance(entry, Entry)}) == (
            self.options.nodes
        )

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
    said = {name: value for name, value in raw.items() if value is not None}
    return {f"TM_{name.upper()}": str(value) for name, value in said.items()}


def _free_port() -> int:
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
