"""The generator keeps its files up to date and never changes what is published."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.contract.contract import PROTO, ROOT

pytestmark = pytest.mark.contract


@pytest.fixture
def proto(tmp_path: Path) -> Path:
    """Copy the whole contract, to be spoilt."""
    return shutil.copytree(PROTO, tmp_path / "proto")


def generate(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tools.generate_contract", *arguments]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False
    )


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


def test_the_generated_files_are_up_to_date():
    result = generate("--check")
    assert result.returncode == 0, result.stderr


def test_a_check_names_what_is_missing_old_and_stray_and_writes_nothing(proto: Path):
    (proto / "schemas/Held.json").unlink()
    (proto / "samples/Gone.json").write_text("[]")
    change(proto / "README.md", "A held job may be placed again.", "Something else.")
    before = {path: path.read_bytes() for path in proto.rglob("*.*") if path.is_file()}

    result = generate("--check", "--proto", str(proto))

    assert result.returncode == 1
    assert sorted(result.stderr.splitlines()) == [
        f"{proto}/README.md: out of date, run `make contract`",
        f"{proto}/samples/Gone.json: no such message, delete it",
        f"{proto}/schemas/Held.json: out of date, run `make contract`",
    ]
    after = {path: path.read_bytes() for path in proto.rglob("*.*") if path.is_file()}
    assert after == before


def test_what_is_missing_is_added_and_what_is_by_hand_stays(proto: Path):
    readme = proto / "README.md"
    change(readme, "# The contract\n", "# Our contract\n")
    (proto / "samples/AttemptStarted.json").unlink()
    numbers = proto / "numbers.json"
    known = json.loads(numbers.read_text())
    numbers.write_text(json.dumps({**known, "PlanMade": {"placements": 1}}))

    assert generate("--proto", str(proto)).returncode == 0

    assert readme.read_text().startswith("# Our contract\n")
    original = (PROTO / "samples/AttemptStarted.json").read_text()
    assert (proto / "samples/AttemptStarted.json").read_text() == original
    assert json.loads(numbers.read_text()) == known


@pytest.mark.parametrize("now", ["preemptions = 3", "evictions = 2"])
def test_a_field_never_changes_its_number_or_goes(proto: Path, now: str):
    plan = proto / "trainmaster/events/v1/plan.proto"
    change(plan, "int32 preemptions = 2;", f"int32 {now};")
    result = generate("--proto", str(proto))
    assert result.returncode == 1
    assert "PlanMade.preemptions has number 2 for ever" in result.stderr


def test_a_sample_never_means_something_else(proto: Path):
    sample = proto / "samples/QuotaSet.json"
    change(sample, '"accelerators": -1', '"accelerators": 0')
    result = generate("--proto", str(proto))
    assert result.returncode == 1
    assert "sample 'defaults' of QuotaSet would mean something else" in result.stderr
