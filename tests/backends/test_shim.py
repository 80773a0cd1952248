"""The shim alone, with what its directory says: no backend, no event loop."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from trainmaster.launcher.backends.process import SHIM

pytestmark = pytest.mark.unit


def run(directory: Path, *argv: str, **changes: object) -> dict[str, Any]:
    """Let a shim run a rank to its end; return all that it wrote down."""
    request = {
        "argv": argv,
        "env": {"PATH": "/usr/bin:/bin", "WORD": "\ud83d\ude00 é \udc80"},
        "cwd": str(directory),
        "log": str(directory / "logs/rank.log"),
        "uid": None,
        "gid": None,
        "groups": None,
        "cgroup": None,
    }
    (directory / "request.json").write_text(json.dumps(request | changes))
    reader, writer = os.pipe()
    lock = os.open(directory / "lock", os.O_CREAT)
    command = [sys.executable, "-I", "-S", str(SHIM), str(directory)]
    kept = (writer, lock)
    shim = subprocess.Popen([*command, *map(str, kept)], pass_fds=kept)
    for fd in kept:
        os.close(fd)
    with os.fdopen(reader) as status:
        said = status.read()
    assert shim.wait(10) == 0
    paths = [p for p in directory.glob("*.json") if p.name != "request.json"]
    written = {path.stem: json.loads(path.read_text()) for path in paths}
    return {**written, "said": said}


def test_a_start_and_an_end_are_written_down(tmp_path: Path):
    written = run(tmp_path, "sh", "-c", "exit 5")
    rank, end = written["started"]["rank"], written["exit"]
    assert (end["rank_pid"], end["code"], end["signal"]) == (rank["pid"], 5, None)
    assert (end["how_known"], end["oom"]) == ("waited", None)
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert written["started"]["boot_id"] == boot_id
    assert written["started"]["at_boot_seconds"] <= end["at_boot_seconds"]
    outcome, _, record = written["said"].partition(" ")
    assert (outcome, json.loads(record)) == ("started", written["started"])


def test_an_end_by_a_signal_is_told_from_a_code(tmp_path: Path):
    end = run(tmp_path, "sh", "-c", "kill -9 $$")["exit"]
    assert (end["code"], end["signal"]) == (None, 9)


def test_exit_127_is_not_a_program_that_is_not_there(tmp_path: Path):
    written = run(tmp_path, "sh", "-c", "exit 127")
    assert written["exit"]["code"] == 127
    absent = tmp_path / "absent"
    absent.mkdir()
    assert "exit" not in run(absent, "no-such-program")


def test_a_program_that_may_not_be_run_says_so(tmp_path: Path):
    (tmp_path / "data").write_text("not a program")
    failed = run(tmp_path, "data", env={"PATH": f"/bin:{tmp_path}"})["failed"]
    assert (failed["step"], failed["what"], failed["errno"]) == ("program", "data", 13)


def test_its_rank_cannot_end_it_by_a_signal(tmp_path: Path):
    script = "for s in TERM HUP INT PIPE USR1; do kill -$s $PPID; done; exit 3"
    assert run(tmp_path, "sh", "-c", script)["exit"]["code"] == 3


def test_what_no_system_call_can_take_fails_the_start(tmp_path: Path):
    assert run(tmp_path, "true", "a\0b")["failed"]["step"] == "program"


def test_variables_reach_the_rank_as_they_are(tmp_path: Path):
    run(tmp_path, "sh", "-c", 'printf %s "$WORD"')
    assert (tmp_path / "logs/rank.log").read_bytes() == "😀 é ".encode() + b"\x80"


def test_output_is_appended(tmp_path: Path):
    for word in ("one", "two"):
        run(tmp_path, "sh", "-c", f"echo {word}; echo {word} >&2")
    text = (tmp_path / "logs/rank.log").read_text()
    assert text.split() == ["one", "one", "two", "two"]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ("low 0\noom_kill 0\n", False),
        ("oom 3\noom_kill 2\n", True),
        ("low 0\n", None),
        (None, None),
    ],
)
def test_out_of_memory_is_what_the_kernel_counted(
    tmp_path: Path, events: str | None, *, expected: bool | None
):
    counted = tmp_path / "tm-x-a1/rank-0"
    counted.mkdir(parents=True)
    if events is not None:
        (counted / "memory.events").write_text(events)
    end = run(tmp_path, "true", cgroup=str(counted))["exit"]
    assert end["oom"] is expected
    assert (counted / "cgroup.procs").read_text() == "0"


def test_a_cgroup_that_cannot_be_entered_fails_the_start(tmp_path: Path):
    written = run(tmp_path, "true", cgroup=str(tmp_path / "absent"))
    assert (written["failed"]["step"], written["failed"]["errno"]) == ("cgroup", 2)


def test_it_reaps_what_its_rank_orphans_and_then_goes(tmp_path: Path):
    run(tmp_path, "sh", "-c", "setsid -f sh -c 'sleep 0.3; echo last'; exit 0")
    assert (tmp_path / "logs/rank.log").read_text() == "last\n"


def test_a_full_disk_at_the_end_does_not_lose_the_end(tmp_path: Path):
    """The room for the record is taken before the start and then written over."""
    script = f"wc -c < {tmp_path}/exit.json.tmp; stat -c %i {tmp_path}/exit.json.tmp"
    run(tmp_path, "sh", "-c", script)
    size, inode = (tmp_path / "logs/rank.log").read_text().split()
    assert int(size) >= 4096
    assert (tmp_path / "exit.json").stat().st_ino == int(inode)
