"""Servers that die under a running stack, and a stack that stops under followers."""

import json
import os
import signal
import socket
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from tests.e2e.stack import Stack, until

from trainmaster.client.client import JobFile
from trainmaster.client.credentials import find_credentials
from trainmaster.runtime.embedded.ports import is_free, kept_port

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]


def a_file(folder: Path, name: str, script: str, *more: str) -> Path:
    """Write a job file of one shell line."""
    folder.chmod(0o777)  # ranks run as whoever submitted
    file = folder / f"{name}.yaml"
    lines = [f"name: {name}", f"command: {script!r}", "stop_grace: 1", *more]
    file.write_text("\n".join(lines) + "\n")
    return file


def a_runner(stack: Stack, folder: Path, name: str, **spec: object) -> str:
    """Submit a job that says `tick` until a file `go-NAME` is there."""
    folder.chmod(0o777)
    go = folder / f"go-{name}"
    script = f"while [ ! -e {go} ]; do echo tick; sleep 0.1; done; echo over"
    output = str(folder / f"{name}-output")
    job = stack.submit(
        folder,
        name=name,
        command=["/bin/sh", "-c", script],
        output_directory=output,
        **spec,
    )
    stack.saw(job, "attempt_started")
    return job


def pids_of(stack: Stack, job: str) -> list[int]:
    started = stack.saw(job, "member_started")
    return [pid for event in started for pid in event["event"]["pids"]]


def ready(stack: Stack) -> bool:
    return stack.tm("status").returncode == 0


@pytest.mark.parametrize("server", ["nats", "postgres"])
def test_a_killed_server_comes_back_and_jobs_never_notice(
    stack: Stack, tmp_path: Path, server: str
):
    job = a_runner(stack, tmp_path, f"through-{server}")
    (pid,) = pids_of(stack, job)
    before = stack.server_pid(server)
    port = kept_port(stack.data / server / "port")
    os.kill(before, signal.SIGKILL)

    after = a_file(tmp_path, f"after-{server}", "echo hi")
    began = time.monotonic()
    answer = stack.tm("submit", str(after), "--wait", "--timeout", "40")
    assert answer.returncode == 0, answer.stderr
    assert time.monotonic() - began < 30

    assert stack.server_pid(server) != before
    assert kept_port(stack.data / server / "port") == port
    assert Path(f"/proc/{pid}").exists(), "the rank was not touched"
    (tmp_path / f"go-through-{server}").touch()
    assert stack.final(job) == "succeeded"
    assert stack.job(job)["attempt"] == 1
    told = (stack.data / "up.log").read_text()
    assert "died and runs again" in told
    assert "Traceback" not in told
    assert stack.process is not None
    assert stack.process.poll() is None
    until("all is ready again", lambda: ready(stack))


@contextmanager
def kept_down(stack: Stack, server: str) -> Generator[int]:
    """Kill a server and sit on its port, so that it cannot come back."""
    port = kept_port(stack.data / server / "port")
    assert port is not None
    assert stack.process is not None
    stack.process.send_signal(signal.SIGSTOP)  # or it is back before we are there
    try:
        os.kill(stack.server_pid(server), signal.SIGKILL)
        until("its port is free", lambda: is_free(port))
        taken = socket.create_server(("127.0.0.1", port))
    finally:
        stack.process.send_signal(signal.SIGCONT)
    with taken:
        yield port


def post(stack: Stack, file: Path) -> httpx.Response:
    """Submit as another program would."""
    credentials = find_credentials(stack.data, {})
    sent = JobFile(content=file.read_bytes(), directory=str(file.parent))
    token = {"authorization": f"Bearer {credentials.token}"}
    return httpx.post(
        f"{credentials.url}/api/v1/jobs",
        content=sent.content,
        headers=sent.headers() | token,
        timeout=20,
        trust_env=False,
    )


def refused(stack: Stack, *words: str, seconds: float) -> str:
    """Run a command that cannot be answered now; returns what it says of that."""
    began = time.monotonic()
    answer = stack.tm(*words)
    assert time.monotonic() - began < seconds, words
    assert answer.returncode == 6, (words, answer.stdout)
    with stack.client() as client:
        assert client.url in answer.stderr
    assert "`tm status` says what it lacks" in answer.stderr
    return answer.stderr


def test_a_stack_that_lacks_a_server_says_what_is_wrong_and_hangs_nowhere(
    stack: Stack, tmp_path: Path
):
    file = a_file(tmp_path, "later", "echo hi")
    with kept_down(stack, "nats") as port:
        wrong = f"its port {port} was taken by another program"
        until("it is noticed", lambda: wrong in stack.tm("status").stdout)
        up = stack.tm("up")
        assert up.returncode == 6
        assert "Trainmaster runs already: http://" in up.stdout
        assert "but it is not well:" in up.stdout
        assert wrong in up.stdout
        # What was read before is shown for a while; then nobody pretends to know.
        until("it is not known any more", lambda: stack.tm("list").returncode == 6)
        for words in (("list",), ("status", "x"), ("cancel", "x"), ("nodes",)):
            refused(stack, *words, seconds=15)
        told = refused(stack, "submit", str(file), seconds=30)
        assert "`--key " in told, "how to repeat it without a second job"
        problem = post(stack, file)
        assert problem.status_code == 503
        assert problem.headers["content-type"] == "application/problem+json"
        assert int(problem.headers["retry-after"]) > 0
        assert "not ready" in problem.json()["detail"]
    until("it mends itself", lambda: ready(stack))
    answer = stack.tm("submit", str(file), "--wait", "--timeout", "40")
    assert answer.returncode == 0, answer.stderr


def test_followers_outlive_a_restart_and_see_everything_once(
    stack: Stack, tmp_path: Path
):
    job = a_runner(stack, tmp_path, "followed")
    logs = stack.tm_process("logs", "-f", "followed")
    events = stack.tm_process("events", "-f", "followed", "-o", "json")
    assert logs.stdout is not None
    assert logs.stdout.readline() == "tick\n"
    stack.down()
    stack.up()
    (tmp_path / "go-followed").touch()
    assert stack.final(job) == "succeeded"
    out, err = logs.communicate(timeout=60)
    assert logs.returncode == 0, err
    written = (tmp_path / "followed-output/logs/attempt-1/rank-0.log").read_text()
    assert "tick\n" + out == written
    assert "Trying again for" in err
    assert "is back" in err
    told, err = events.communicate(timeout=60)
    assert events.returncode == 0, err
    lines = [json.loads(line) for line in told.splitlines()]
    numbers = [line["seq"] for line in lines]
    assert numbers == sorted(set(numbers))
    assert lines[-1]["type"] == "succeeded"


def test_jobs_on_nodes_that_were_left_out_are_named(stack: Stack, tmp_path: Path):
    job = a_runner(stack, tmp_path, "wide", nodes=2)
    stack.down()
    said = len((stack.data / "up.log").read_text())
    stack.up(nodes=1)
    log = stack.data / "up.log"
    until("it is warned", lambda: "Warning" in log.read_text()[said:])
    warning = log.read_text()[said:]
    assert f"(n2: wide ({job}))" in warning
    assert "`tm up --nodes 2`" in warning

    assert stack.tm("cancel", "wide").returncode == 0
    lost = "on n2 (lost: start its agent again)"
    until("the one it waits for is named", lambda: lost in stack.job(job)["reason"])
    assert lost in stack.tm("status", "wide").stdout
    stack.down()
    stack.up()
    assert stack.final(job) == "cancelled"
    again = stack.tm("cancel", job, job)
    assert again.returncode == 0
    assert "it is cancelled already" in again.stdout


def test_down_twice_says_that_nothing_runs(stack: Stack):
    stack.down()
    again = stack.tm("down")
    assert again.returncode == 0
    assert "Nothing runs below" in again.stdout
    assert "Stopped" not in again.stdout
    stack.up()
