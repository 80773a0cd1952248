"""A `tm up` of its own for one benchmark, and the questions it is asked."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from trainmaster.client.client import Client, JobFile
from trainmaster.client.credentials import find_credentials

_STACK: Final = [sys.executable, "-m", "trainmaster.runtime.stack"]
_SECONDS: Final = 60.0
FINAL: Final = frozenset({"succeeded", "failed", "cancelled"})


def data_folder() -> Path:
    """Make an empty data directory that every account may pass through."""
    data = Path(tempfile.mkdtemp(prefix="tm-bench-"))
    data.chmod(0o711)
    return data


def start(
    data: Path, *, nodes: int = 1, accelerators: int = 2
) -> tuple["subprocess.Popen[bytes]", float]:
    """Start `tm up`; returns the process and the seconds until it was ready."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [
            *_STACK,
            "up",
            *("--data-dir", str(data)),
            *("--nodes", str(nodes)),
            *("--fake-accelerators", str(accelerators)),
        ],
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    while not (data / "credentials.json").exists():
        if process.poll() is not None or time.perf_counter() - began > _SECONDS:
            raise SystemExit("the stack did not start")
        time.sleep(0.005)
    return process, time.perf_counter() - began


def stop(process: "subprocess.Popen[bytes]") -> None:
    """Stop it as Ctrl-C does."""
    process.terminate()
    process.wait()


def remove(data: Path) -> None:
    """Delete the data directory and what lies outside of it."""
    subprocess.run(
        [*_STACK, "remove", "--data-dir", str(data)],
        check=True,
        stdout=subprocess.DEVNULL,
    )


@contextmanager
def stack(*, nodes: int = 1, accelerators: int = 2) -> Generator[tuple[Client, Path]]:
    """Run a stack for the length of a benchmark."""
    data = data_folder()
    process, _ = start(data, nodes=nodes, accelerators=accelerators)
    try:
        with Client(find_credentials(data)) as client:
            yield client, data
    finally:
        stop(process)
        remove(data)


def submit(client: Client, spec: dict[str, Any], *, directory: Path) -> str:
    """Submit a job as JSON; returns its id."""
    file = JobFile(
        content=json.dumps(spec).encode(),
        name="bench.json",
        directory=str(directory),
        json=True,
    )
    return client.submit(file)["job"]


def wait_for(what: str, is_so: Any, *, seconds: float = _SECONDS) -> Any:
    """Wait until something is so; returns it."""
    end = time.perf_counter() + seconds
    while True:
        found = is_so()
        if found:
            return found
        if time.perf_counter() > end:
            raise SystemExit(f"not within {seconds:g} s: {what}")
        time.sleep(0.002)


def wait_final(client: Client, job: str, *, seconds: float = _SECONDS) -> str:
    """Wait until a job is over; returns how."""
    state: str = wait_for(
        f"job {job} is over",
        lambda: (s := client.job(job)["state"]) in FINAL and s,
        seconds=seconds,
    )
    return state
