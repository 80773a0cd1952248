"""The examples in other languages, on the live stack, with a source's rights alone."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.e2e.stack import Stack, tm, until

from trainmaster.core.ingress import Outcome, RequestAnswered

pytestmark = pytest.mark.e2e

EXAMPLES = Path(__file__).parents[2] / "examples" / "publishers"


@pytest.fixture
def credentials(stack: Stack) -> Path:
    """Let a source in while the stack runs, as the README says."""
    data = ("--data-dir", str(stack.data))
    assert tm("sources", "add", "ci", *data).returncode == 0
    path = stack.data / "sources" / "ci.json"
    until("the source is let in", path.exists)
    return path


def node(_tmp_path: Path) -> list[str]:
    """Say how the example in Node.js is run."""
    program = shutil.which("node")
    if program is None:
        pytest.skip("node is not installed (Debian: apt install nodejs npm)")
    if not (EXAMPLES / "node" / "node_modules" / "nats").is_dir():
        pytest.skip("the npm package `nats` is not there: run `make publishers`")
    return [program, str(EXAMPLES / "node" / "publish.mjs")]


def rust(tmp_path: Path) -> list[str]:
    """Build the example in Rust."""
    compiler = shutil.which("rustc")
    if compiler is None:
        pytest.skip("rustc is not installed (Debian: apt install rustc)")
    program, source = tmp_path / "publish", EXAMPLES / "rust" / "publish.rs"
    build = [compiler, "--edition", "2021", "-o", str(program), str(source)]
    subprocess.run(build, check=True)
    return [str(program)]


def publish(
    command: list[str], credentials: Path, folder: Path
) -> list[RequestAnswered]:
    """Run an example; returns what it was answered, each line parsed."""
    job = folder / "job.yaml"  # what it writes lies beside it
    shutil.copy(EXAMPLES / "node" / "job.yaml", job)
    ended = subprocess.run(
        [*command, str(credentials), str(job)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return [RequestAnswered.from_json(line) for line in ended.stdout.splitlines()]


@pytest.mark.parametrize("example", [node, rust])
def test_a_publisher_submits_reports_and_cancels(
    stack: Stack,
    credentials: Path,
    tmp_path: Path,
    example: Callable[[Path], list[str]],
):
    answers = publish(example(tmp_path), credentials, tmp_path)
    accepted = [a for a in answers if a.outcome is Outcome.ACCEPTED]
    kinds = list(dict.fromkeys(answer.kind for answer in accepted))
    assert kinds == ["job_requested", "metric_reported", "cancel_requested"]
    [job] = {answer.job for answer in accepted}
    assert stack.final(job) == "cancelled"
    told = {
        event["type"]: event["event"].get("by")
        for event in stack.events(job)
        if event["type"] in {"submitted", "cancel_requested"}
    }
    assert told == dict.fromkeys(("submitted", "cancel_requested"), "source:ci")

    def shown() -> bool:
        found = stack.job(job)
        return (found["step"], found["loss"]) == (10, 0.25)

    until("the metric is shown", shown, seconds=10)


def test_the_credentials_are_those_of_a_source_and_private(credentials: Path):
    told = json.loads(credentials.read_text())
    assert told["user"] == "source-ci"
    assert told["inbox_prefix"] == "_INBOX_source-ci"
    assert credentials.stat().st_mode & 0o077 == 0
