"""A node is checked before a start is ordered, and what is wrong is named."""

import os
import sys
from pathlib import Path

import pytest
from blake3 import blake3

from trainmaster.launcher.agent.preflight import (
    Examination,
    Examiner,
    python_version,
)

pytestmark = pytest.mark.unit


def examination(tmp_path: Path, *command: str, **changes: object) -> Examination:
    return Examination(
        command=command or ("sh", "-c", "true"),
        search_path="/usr/bin:/bin",
        work_directory=str(tmp_path),
        directories={"output_directory": str(tmp_path / "out" / "deep")},
    ).model_copy(update=changes)


def test_what_is_fine_has_versions_and_its_directories(tmp_path: Path):
    seen = Examiner().examine(examination(tmp_path))
    assert seen.failure is None
    assert seen.versions.keys() == {"program"}
    assert (tmp_path / "out" / "deep").is_dir()


def test_of_an_interpreted_program_the_script_counts(tmp_path: Path):
    script = tmp_path / "train.py"
    script.write_text("print()")
    python = f"{sys.prefix}/bin/python"
    examiner = Examiner()
    request = examination(tmp_path, python, "-u", "train.py", "--x", "1")
    seen = examiner.examine(request)
    assert seen.versions == {
        "program": blake3(b"print()").hexdigest(),
        "python": ".".join(map(str, sys.version_info[:3])),
    }
    script.write_text("print(1)")
    assert examiner.examine(request).versions != seen.versions


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"command": ("nope",)}, "command", "no executable 'nope' on PATH"),
        ({"command": ("./nope",)}, "command", "no file"),
        ({"command": ("./plain",)}, "command", "is not executable"),
        ({"command": ()}, "command", "the command is empty"),
        ({"work_directory": "/nowhere"}, "work_directory", "/nowhere is not there"),
        ({"work_directory": "x"}, "work_directory", "x"),
        ({"directories": {"a": ""}}, "a", "nothing"),
        ({"directories": {"a": "/proc/x/y"}}, "a", "/proc/x"),
    ],
)
def test_what_is_wrong_is_named(
    tmp_path: Path, changes: dict[str, object], field: str, words: str
):
    (tmp_path / "plain").write_text("")
    failure = Examiner().examine(examination(tmp_path, **changes)).failure
    assert failure is not None
    assert failure.field == field
    assert words in failure.seen


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path):
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere; test_hands does it as another user")
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    directories = {"output_directory": str(closed)}
    failure = Examiner().examine(examination(tmp_path, directories=directories)).failure
    assert failure is not None
    assert "cannot be written" in failure.seen


def test_the_version_of_an_interpreter_is_read_and_not_asked_for(tmp_path: Path):
    (tmp_path / "bin").mkdir()
    real = tmp_path / "bin" / "python3.12"
    real.write_text("not a program")
    (tmp_path / "bin" / "python").symlink_to(real)
    assert python_version(tmp_path / "bin" / "python") == "3.12"
    (tmp_path / "pyvenv.cfg").write_text("home = x\nversion = 3.12.4\n")
    assert python_version(tmp_path / "bin" / "python") == "3.12.4"
    assert python_version(Path("/bin/sh")) == ""


def test_a_huge_program_is_compared_by_its_size(tmp_path: Path):
    with (tmp_path / "data").open("wb") as file:
        file.truncate(2**30)
    seen = Examiner().examine(examination(tmp_path, "sh", "data"))
    assert seen.versions == {"program": f"{2**30} bytes"}
