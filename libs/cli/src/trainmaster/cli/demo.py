"""The whole story in a minute: train on two nodes, kill a rank, resume, give back.

Everything happens in a data directory of its own and is stopped at the end. What is
shown is what the log says; nothing here knows how it will end.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from trainmaster.cli.exits import Exit
from trainmaster.cli.output import say
from trainmaster.client.client import Client, JobFile
from trainmaster.client.credentials import find_credentials

_JOB_FILE: Final = Path("examples") / "char_lm" / "train.yaml"
_KILL_AT_STEP: Final = 120
_SHOW_EVERY_STEPS: Final = 30
_READY_SECONDS: Final = 60.0
_PATIENCE_SECONDS: Final = 180.0
_LOOK_SECONDS: Final = 0.1
_FINAL: Final = frozenset({"succeeded", "failed", "cancelled"})
_STAGES: Final = (
    ("queued", "submitted", "attempt_placed"),
    ("preparing", "attempt_placed", "start_ordered"),
    ("starting", "start_ordered", "attempt_started"),
    ("running", "attempt_started", "attempt_ended"),
    ("giving back", "attempt_ended", "attempt_reclaimed"),
    ("choosing a checkpoint", "attempt_reclaimed", "checkpoint_chosen"),
)


@dataclass(slots=True)
class Told:
    """What was shown already."""

    after: int = 0
    step: int = -1
    killed: int = 0
    events: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


def run(root: Path | None = None) -> int:
    """Run the demo; 0 when the job succeeded although a rank was killed."""
    job_file = _find_job_file(root or Path.cwd())
    data = Path(tempfile.mkdtemp(prefix="tm-demo-"))
    data.chmod(0o711)  # PostgreSQL may have to be another user
    with _stack(data), Client(find_credentials(data)) as client:
        receipt = client.submit(
            JobFile(
                content=job_file.read_bytes(),
                name=str(job_file),
                directory=str(job_file.parent.absolute()),
            )
        )
        say(f"\nSubmitted {receipt['name']} as {receipt['job']}. Its life:\n")
        told = _follow(client, receipt["job"])
        return _conclude(client, receipt["job"], told)


@contextmanager
def _stack(data: Path) -> Generator[None]:
    """Run servers, services and two nodes for the length of the demo."""
    command = [sys.executable, "-m", "trainmaster.runtime.stack"]
    chosen = ["--data-dir", str(data)]
    process = subprocess.Popen(
        [*command, "up", *chosen, "--nodes", "2", "--fake-accelerators", "2"],
        start_new_session=True,
    )
    try:
        _wait_until_ready(process, data / "credentials.json")
        yield
    finally:
        process.terminate()
        process.wait()
        subprocess.run(
            [*command, "remove", *chosen], check=True, stdout=subprocess.DEVNULL
        )


def _wait_until_ready(process: "subprocess.Popen[bytes]", credentials: Path) -> None:
    end = time.monotonic() + _READY_SECONDS
    while not credentials.exists():
        if process.poll() is not None or time.monotonic() > end:
            say("The stack did not start; see above. `tm up` shows the same.")
            raise SystemExit(Exit.UNREACHABLE)
        time.sleep(_LOOK_SECONDS)


def _follow(client: Client, job: str) -> Told:
    """Show events, steps and losses until the job is over; kill one rank once."""
    told = Told()
    end = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < end:
        details = client.job(job)
        for event in client.events(job, after=told.after):
            told.after = event["seq"]
            told.events.append(dict(event))
            say(f"  {_clock(event['time'])}  {event.get('summary') or event['type']}")
        _show_progress(details, told)
        step = details.get("step") or 0
        if not told.killed and step >= _KILL_AT_STEP:
            told.killed = _kill_a_rank(told)
        if details["state"] in _FINAL and _archived(told):
            return told
        time.sleep(_LOOK_SECONDS)
    say(f"The job was not over after {_PATIENCE_SECONDS:g} s; giving up.")
    raise SystemExit(Exit.TIMED_OUT)


def _archived(told: Told) -> bool:
    return any(event["type"] == "archived" for event in told.events)


def _show_progress(details: dict[str, Any], told: Told) -> None:
    step, loss = details.get("step"), details.get("loss")
    if step is None or step // _SHOW_EVERY_STEPS == told.step // _SHOW_EVERY_STEPS:
        return
    told.step = step
    shown = "?" if loss is None else f"{loss:.4f}"
    say(f"            step {step:4d}   loss {shown}")


def _kill_a_rank(told: Told) -> int:
    """Kill the last rank that was reported to run, as a fault would."""
    pids: list[int] = [
        pid
        for event in told.events
        if event["type"] == "member_started"
        for pid in _body(event).get("pids", ())
    ]
    if not pids:
        return 0
    say(f"\n            >>> kill -9 {pids[-1]}  (one rank of four)\n")
    os.kill(pids[-1], signal.SIGKILL)
    return pids[-1]


def _conclude(client: Client, job: str, told: Told) -> int:
    details = client.job(job)
    say("\nHow long each stage took:\n")
    for attempt, stage, seconds in stage_seconds(told.events):
        say(f"  attempt {attempt}  {stage:<22} {seconds * 1000:9.0f} ms")
    say("\nWhat was given back:\n")
    for event in told.events:
        if event["type"] == "attempt_reclaimed":
            for proof in _body(event)["proofs"]:
                number, node = event.get("attempt"), proof["node"]
                say(f"  attempt {number} on {node}: {_how(proof)}")
    say(f"\nThe job {details['state']}: {details.get('verdict') or ''}".rstrip(": "))
    succeeded = details["state"] == "succeeded" and told.killed
    return Exit.OK if succeeded else Exit.FAILED


def _body(event: dict[str, Any]) -> dict[str, Any]:
    return event.get("event") or {}


def _how(proof: dict[str, Any]) -> str:
    detail = proof.get("detail", "")
    return f"{proof.get('how', '')}: {detail}" if detail else str(proof.get("how", ""))


def stage_seconds(
    events: list[dict[str, Any]],
) -> Iterator[tuple[int, str, float]]:
    """Measure the stages of every attempt between the events that bound them."""
    attempts = sorted({e.get("attempt") or 0 for e in events} - {0})
    for attempt in attempts:
        at: dict[str, datetime] = {}
        for event in events:
            mine = event.get("attempt") == attempt or event["type"] == "submitted"
            if mine:
                at[event["type"]] = datetime.fromisoformat(event["time"])
        for stage, first, last in _STAGES:
            if first in at and last in at and (first != "submitted" or attempt == 1):
                yield attempt, stage, (at[last] - at[first]).total_seconds()


def _clock(time_text: str) -> str:
    return datetime.fromisoformat(time_text).strftime("%H:%M:%S.%f")[:-3]


def _find_job_file(start: Path) -> Path:
    for place in (start, *start.absolute().parents, *Path(__file__).parents):
        if (place / _JOB_FILE).is_file():
            return place / _JOB_FILE
    say(f"There is no {_JOB_FILE} here; run `tm demo` in a checkout.")
    raise SystemExit(Exit.NOT_FOUND)
