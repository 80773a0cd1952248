"""How quickly `tm` starts, and how it starts and stops a stack."""

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.cli.terminal import TM

from trainmaster.cli import stack

pytestmark = pytest.mark.unit

HEAVY = {"asyncio", "fastapi", "httpx", "pydantic", "rich"}
# typer itself needs pydantic as soon as a command has options to read
OURS = {"trainmaster.core.model", "trainmaster.core.spec", "trainmaster.runtime"}


def loaded_by(*words: str) -> set[str]:
    """Name what a command imported."""
    code = (
        "import sys, atexit\n"
        "atexit.register(lambda: sys.stderr.write(' '.join(sys.modules)))\n"
        "from trainmaster.cli.main import main\n"
        f"main({list(words)!r})"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    return set(run.stderr.split())


def test_help_loads_nothing_heavy():
    assert loaded_by("--help") & (HEAVY | OURS) == set()


def test_reading_never_loads_the_services_libraries(tmp_path: Path):
    (tmp_path / "credentials.json").write_text('{"url": "http://[::1]:9", "token": ""}')
    loaded = loaded_by("list", "--data-dir", str(tmp_path))
    assert "httpx" in loaded, "the command did not come that far"
    assert loaded & ({"fastapi", "rich"} | OURS) == set()


def test_help_takes_little_more_work_than_typer_itself():
    """Budget 250 ms, most of it typer's own import; both vary with the machine."""

    def spent(*words: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *words], capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    typer = min(spent("-c", "import typer.main") for _ in range(3))
    assert min(spent(*TM[1:], "--help") for _ in range(3)) < 2 * typer


def test_every_command_is_there():
    run = subprocess.run([*TM, "--help"], capture_output=True, text=True, check=True)
    named = {line.split()[0] for line in run.stdout.splitlines() if line[:2] == "  "}
    wanted = "up down demo submit list status events logs cancel nodes hold release"
    assert set(wanted.split()) <= named


@pytest.mark.parametrize(
    "words", [["bogus"], ["list", "-o", "xml"], ["logs"], ["logs", "x", "--rank", "-1"]]
)
def test_a_wrong_command_line_is_invalid(words: list[str]):
    run = subprocess.run([*TM, *words], capture_output=True, check=False)
    assert run.returncode == 2
    assert run.stderr


READY = """\
import json, os, pathlib, signal, sys
print("ready", *sys.argv[1:], flush=True)
data = pathlib.Path(sys.argv[sys.argv.index("--data-dir") + 1])
(data / "credentials.json").write_text(json.dumps({"pid": os.getpid()}))
signal.pause()
"""


def a_program(text: str) -> list[str]:
    """Stand in for the stack's own program."""
    return [sys.executable, "-c", text]


def test_what_was_told_is_passed_on():
    wanted = stack.Wanted(data=Path("/d"), nodes=2, fake_accelerators=3)
    assert " ".join(wanted.words()) == (
        "up --data-dir /d --nodes 2 --fake-accelerators 3 --log-level WARNING"
    )
    assert "--data-dir" not in stack.Wanted().words()


def test_up_becomes_the_stacks_own_program():
    program = a_program("import os, sys; print(os.getpid(), sys.argv[1:]); sys.exit(7)")
    code = (
        "import os; from trainmaster.cli import stack; print(os.getpid()); "
        f"stack.replace_by(['up', 'x'], program={program!r})"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    before, after = run.stdout.splitlines()
    assert after == f"{before} ['up', 'x']"
    assert run.returncode == 7


def test_a_detached_stack_is_ready_and_goes_on(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    data = tmp_path / "data"
    data.mkdir()
    (data / "credentials.json").write_text('{"pid": 1}')  # a killed one left it
    wanted = stack.Wanted(data=data)
    code = stack.start_detached(wanted, program=a_program(READY))
    seen = capfd.readouterr()
    assert code == 0
    assert seen.out.startswith("ready up --data-dir")
    assert "`tm down` stops it" in seen.err
    pid = json.loads((data / "credentials.json").read_text())["pid"]
    os.kill(pid, signal.SIGTERM)  # raises when it ended with the command
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGTERM


def test_a_detached_stack_that_fails_is_shown_with_its_code(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    wanted = stack.Wanted(data=tmp_path / "data")
    failing = a_program("raise SystemExit('tm up: no room on the disk')")
    assert stack.start_detached(wanted, program=failing) == 1
    assert "no room on the disk" in capfd.readouterr().out
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
