"""The stack and the command line as a user starts them, each a program of its own."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainmaster.client.client import Client, JobFile
from trainmaster.client.credentials import find_credentials

FINAL = frozenset({"succeeded", "failed", "cancelled"})
_LOOK_SECONDS = 0.05
Event = Mapping[str, Any]


def until(what: str, is_so: Callable[[], Any], *, seconds: float = 60.0) -> Any:
    """Wait until something is so and return it; fails with what was waited for."""
    end = time.monotonic() + seconds
    while not (found := is_so()):
        assert time.monotonic() < end, f"not within {seconds:g} s: {what}"
        time.sleep(_LOOK_SECONDS)
    return found


def tm(
    *words: str, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command line to its end."""
    return subprocess.run(
        [sys.executable, "-m", "trainmaster.cli.main", *words],
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@dataclass(slots=True)
class Stack:
    """A data directory and the `tm up` that runs on it."""

    data: Path
    process: "subprocess.Popen[bytes] | None" = None

    def up(self, *, nodes: int = 2) -> None:
        """Start it and wait until it is ready."""
        shape = ("--nodes", str(nodes), "--fake-accelerators", "4")
        with (self.data / "up.log").open("ab") as log:
            process = subprocess.Popen(
                [*self._program("up"), *shape],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.process = process
        until("the stack is ready", lambda: self._is_ready(process))

    def down(self) -> None:
        """Stop it as `tm down` does."""
        subprocess.run(self._program("down"), check=True, stdout=subprocess.DEVNULL)
        assert self.process is not None
        assert self.process.wait(20) == 0

    def crash(self) -> None:
        """End its process as the kernel would; its servers and ranks go on."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def server_pid(self, server: str) -> int:
        """Find the process of `nats` or `postgres`."""
        pid: int = json.loads((self.data / server / "pid").read_text())["pid"]
        return pid

    def tm(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run the command line on this stack."""
        return tm(words[0], "--data-dir", str(self.data), *words[1:])

    def tm_process(self, *words: str) -> "subprocess.Popen[str]":
        """Start the command line on this stack, its output in pipes."""
        command = [sys.executable, "-m", "trainmaster.cli.main", words[0]]
        return subprocess.Popen(
            [*command, "--data-dir", str(self.data), *words[1:]],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def remove(self) -> None:
        """Stop whatever runs and delete everything."""
        subprocess.run(self._program("remove"), check=True, stdout=subprocess.DEVNULL)

    def client(self) -> Client:
        """Talk to it as the command line does."""
        return Client(find_credentials(self.data, {}))

    def submit(self, folder: Path, **spec: Any) -> str:
        """Submit a job whose paths are those of a folder; returns its id."""
        body = {"stop_grace": 1, "work_directory": str(folder), **spec}
        content = json.dumps(body).encode()
        with self.client() as client:
            file = JobFile(content=content, directory=str(folder), json=True)
            return client.submit(file)["job"]

    def job(self, job: str) -> Mapping[str, Any]:
        """Show a job."""
        with self.client() as client:
            return client.job(job)

    def events(self, job: str) -> list[Event]:
        """List what happened to a job."""
        with self.client() as client:
            return [dict(event) for event in client.events(job)]

    def final(self, job: str, *, seconds: float = 60.0) -> str:
        """Wait until a job is over and archived; returns how it ended."""

        def over() -> str:
            found = self.job(job)
            return found["state"] if found["archived"] else ""

        return str(until(f"{job} is archived", over, seconds=seconds))

    def saw(self, job: str, kind: str, least: int = 1) -> list[Event]:
        """Wait for so many events of a kind and return them."""

        def seen() -> list[Event]:
            found = [event for event in self.events(job) if event["type"] == kind]
            return found if len(found) >= least else []

        found: list[Event] = until(f"{job} has {least} {kind}", seen)
        return found

    def _program(self, verb: str) -> list[str]:
        module = "trainmaster.runtime.stack"
        return [sys.executable, "-m", module, verb, "--data-dir", str(self.data)]

    def _is_ready(self, process: "subprocess.Popen[bytes]") -> bool:
        log = self.data / "up.log"
        assert process.poll() is None, log.read_text()
        try:
            text = (self.data / "credentials.json").read_text()
        except FileNotFoundError:
            return False
        return bool(json.loads(text)["pid"] == process.pid)


@contextmanager
def running_stack(data: Path) -> Generator[Stack]:
    """Run a stack for the length of some tests."""
    stack = Stack(data)
    try:
        stack.up()
        yield stack
    finally:
        if stack.process is not None and stack.process.poll() is None:
            stack.process.terminate()
            stack.process.wait(30)
        stack.remove()
