"""Stops, crashes and mistakes as a user meets them: what ran on is found again."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.e2e.stack import Stack, tm, until

from trainmaster.runtime.embedded.ports import settle_port

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]


def test_a_second_up_finds_the_first(stack: Stack):
    answer = tm("up", "--data-dir", str(stack.data))
    assert answer.returncode == 0, answer.stderr
    with stack.client() as client:
        assert f"runs already: {client.url}" in answer.stdout
    assert stack.process is not None
    assert stack.process.poll() is None


@pytest.mark.parametrize("way", ["down", "crash"])
def test_jobs_that_ran_on_are_found_again(stack: Stack, tmp_path: Path, way: str):
    """One ends well and one badly while nobody is there; one is still at it."""
    tmp_path.chmod(0o777)
    codes = {"well": 0, "badly": 7, "later": 0}
    jobs = {name: _waiter(stack, tmp_path, name, codes[name]) for name in codes}
    pids: dict[str, int] = {}
    for name, job in jobs.items():
        (started,) = stack.saw(job, "member_started")
        (pids[name],) = started["event"]["pids"]
        stack.saw(job, "attempt_started")

    if way == "down":
        stack.down()
    else:
        stack.crash()
    assert all(map(_runs, pids.values())), "ranks do not need us"
    for name in ("well", "badly"):
        (tmp_path / name).touch()
        until(f"{name} ends", lambda pid=pids[name]: not _runs(pid))
    stack.up()

    assert stack.final(jobs["badly"]) == "failed"
    assert stack.final(jobs["well"]) == "succeeded"
    assert _runs(pids["later"])
    (tmp_path / "later").touch()
    assert stack.final(jobs["later"]) == "succeeded"
    for name, job in jobs.items():
        assert stack.job(job)["attempt"] == 1
        (exited,) = stack.saw(job, "rank_exited")
        assert exited["event"]["exit"].get("code", 0) == codes[name]


def _waiter(stack: Stack, folder: Path, name: str, code: int) -> str:
    wait = f"while [ ! -e {folder / name} ]; do sleep 0.05; done; exit {code}"
    return stack.submit(
        folder,
        name=name,
        command=["/bin/sh", "-c", wait],
        accelerators_per_node=1,
        output_directory=str(folder / f"{name}-output"),
        retries=0,
    )


def _runs(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_a_wrong_job_file_is_refused_with_its_place(stack: Stack, tmp_path: Path):
    bad = tmp_path / "bad.yaml"
    bad.write_text("name: lm\ncommand: ./train\nnodse: 2\n")
    with stack.client() as client:
        before = len(client.jobs())
        answer = tm("submit", str(bad), "--data-dir", str(stack.data))
        assert answer.returncode == 2
        wrong = f"{bad}:3:1 unknown field `nodse`. Did you mean `nodes`?"
        assert wrong in answer.stderr
        assert len(client.jobs()) == before


def test_without_a_server_the_address_and_the_next_step_are_named(tmp_path: Path):
    port = settle_port(tmp_path / "port").number
    nowhere = f"http://127.0.0.1:{port}"
    began = time.monotonic()
    silent = tm("list", env={"TM_URL": nowhere, "TM_TOKEN": "x"})
    absent = tm("list", "--data-dir", str(tmp_path / "nothing"), env={"TM_URL": ""})
    assert time.monotonic() - began < 10, "two interpreters, no waiting"
    assert silent.returncode == absent.returncode == 6
    assert nowhere in silent.stderr
    assert str(tmp_path / "nothing") in absent.stderr
    for answer in (silent, absent):
        assert "tm up" in answer.stderr


def test_down_without_a_stack_says_so(tmp_path: Path):
    program = [sys.executable, "-m", "trainmaster.runtime.stack", "down"]
    answer = subprocess.run(
        [*program, "--data-dir", str(tmp_path / "nothing")],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert "Nothing runs" in answer.stdout
