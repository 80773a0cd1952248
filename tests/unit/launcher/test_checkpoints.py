"""A checkpoint is whole by its content, and what is not goes aside, never away."""

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

import pytest
from blake3 import blake3

from trainmaster.core.messages import ScannedCheckpoint
from trainmaster.launcher.agent.aside import NotBelowError, move_aside
from trainmaster.launcher.agent.checkpoints import FORMAT, Scanner
from trainmaster.launcher.agent.hashing import StoppedError, hash_file

pytestmark = pytest.mark.unit

FILES = {"weights.npy": b"w" * 4096, "optimizer.npy": b"o" * 4096}


def save(root: Path, step: int, files: Mapping[str, bytes] = FILES) -> Path:
    path = root / f"step-{step:06d}"
    path.mkdir(parents=True)
    for name, content in files.items():
        (path / name).write_bytes(content)
    write_manifest(path, step, files)
    return path


def write_manifest(path: Path, step: int, files: Mapping[str, bytes]) -> None:
    entries = [
        {"path": name, "bytes": len(content), "blake3": blake3(content).hexdigest()}
        for name, content in files.items()
    ]
    manifest = {"format": FORMAT, "step": step, "world_size": 2, "files": entries}
    (path / "manifest.json").write_text(json.dumps(manifest))


def scan(root: Path) -> list[ScannedCheckpoint]:
    return list(Scanner().scan(root))


def problem(root: Path) -> str:
    (found,) = scan(root)
    return found.problem


def test_a_whole_checkpoint_has_a_digest_and_no_problem(tmp_path: Path):
    path = save(tmp_path, 100)
    (found,) = scan(tmp_path)
    assert found.problem == ""
    assert (found.path, found.step, found.format) == (str(path), 100, FORMAT)
    assert (found.files, found.bytes, len(found.digest)) == (2, 8192, 64)


def test_a_checkpoint_was_saved_when_its_manifest_was_written(tmp_path: Path):
    path = save(tmp_path, 100)
    old = datetime(2026, 1, 2, 3, 4, 5, 250_000, tzinfo=UTC)
    os.utime(path / "manifest.json", (old.timestamp(), old.timestamp()))
    scanner = Scanner()
    ((first,), (again,)) = scanner.scan(tmp_path), scanner.scan(tmp_path)
    assert (first.saved_at, again) == (old, first)
    os.utime(path / "manifest.json")
    (anew,) = scanner.scan(tmp_path)
    assert anew.saved_at is not None
    assert anew.saved_at > old
    assert anew.digest == first.digest


def test_what_was_never_finished_was_saved_at_no_time(tmp_path: Path):
    save(tmp_path, 100)
    (tmp_path / "step-000100" / "manifest.json").unlink()
    (found,) = scan(tmp_path)
    assert found.saved_at is None


def test_checkpoints_come_in_the_order_of_their_steps(tmp_path: Path):
    for step in (300, 20, 100):
        save(tmp_path, step)
    assert [found.step for found in scan(tmp_path)] == [20, 100, 300]


def test_equal_content_has_an_equal_digest_whatever_the_order(tmp_path: Path):
    save(tmp_path / "a", 1)
    save(tmp_path / "b", 1, dict(reversed(FILES.items())))
    ((first,), (second,)) = scan(tmp_path / "a"), scan(tmp_path / "b")
    assert first.digest == second.digest


def test_a_directory_that_is_not_there_yet_holds_nothing(tmp_path: Path):
    assert scan(tmp_path / "nowhere") == []


def test_other_names_are_not_looked_at(tmp_path: Path):
    for name in (".tm-aside", "step-x", "latest"):
        (tmp_path / name).mkdir()
    (tmp_path / "step-000001").write_text("a file")
    assert scan(tmp_path) == []


def test_a_short_file_is_named_with_its_numbers(tmp_path: Path):
    (save(tmp_path, 1) / "optimizer.npy").write_bytes(b"o" * 1024)
    assert problem(tmp_path) == "optimizer.npy has 1,024 of 4,096 bytes"


def test_a_missing_file_is_named(tmp_path: Path):
    (save(tmp_path, 1) / "weights.npy").unlink()
    assert problem(tmp_path) == "weights.npy is missing"


def test_a_file_of_the_right_size_with_other_content_is_not_whole(tmp_path: Path):
    (save(tmp_path, 1) / "weights.npy").write_bytes(b"x" * 4096)
    assert "weights.npy is not what was saved" in problem(tmp_path)


def test_a_save_that_never_finished_has_no_manifest(tmp_path: Path):
    (save(tmp_path, 1) / "manifest.json").unlink()
    assert problem(tmp_path) == "no manifest.json: its save never finished"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"step": 2}, "its manifest is of step 2"),
        ({"format": "other"}, "manifest.json is not usable: format"),
        ({"files": []}, "manifest.json is not usable: files"),
        ({"step": "x"}, "manifest.json is not usable: step"),
    ],
)
def test_a_manifest_that_does_not_fit_is_a_problem(
    tmp_path: Path, changes: dict[str, object], words: str
):
    path = save(tmp_path, 1) / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    assert problem(tmp_path).startswith(words)


def test_a_torn_manifest_is_a_problem(tmp_path: Path):
    (save(tmp_path, 1) / "manifest.json").write_text('{"format": "train')
    assert problem(tmp_path).startswith("manifest.json is not usable")


@pytest.mark.parametrize("name", ["../secret", "/etc/hostname", "link/secret", "."])
def test_nothing_outside_of_the_checkpoint_is_vouched_for(tmp_path: Path, name: str):
    path = save(tmp_path, 1)
    (tmp_path / "secret").write_bytes(b"s")
    (path / "link").symlink_to(tmp_path)
    write_manifest(path, 1, {name: b"s"})
    assert problem(tmp_path) == f"{name} is outside of the checkpoint"


def test_a_second_look_hashes_only_what_changed(tmp_path: Path):
    hashed: list[str] = []

    def counting(path: Path) -> str:
        hashed.append(path.parent.name)
        return hash_file(path)

    first, second = save(tmp_path, 1), save(tmp_path, 2)
    scanner = Scanner(hash_file=counting)
    before = scanner.scan(tmp_path)
    assert len(hashed) == 4
    assert scanner.scan(tmp_path) == before
    assert len(hashed) == 4
    (second / "weights.npy").write_bytes(b"x" * 4096)
    os.utime(second / "weights.npy", ns=(1, 1))
    assert [found.problem != "" for found in scanner.scan(tmp_path)] == [False, True]
    assert first.name not in hashed[4:]


# ------------------------------------------------------------------------------ aside


def test_what_goes_aside_is_still_there(tmp_path: Path):
    path = save(tmp_path, 600)
    (moved,) = move_aside(tmp_path, (str(path),))
    assert moved.moved_to == str(tmp_path / ".tm-aside" / "step-000600")
    assert (moved.path, moved.step) == (str(path), 600)
    assert not path.exists()
    assert (Path(moved.moved_to) / "weights.npy").read_bytes() == FILES["weights.npy"]
    assert scan(tmp_path) == []


def test_a_second_one_of_the_same_name_gets_a_number(tmp_path: Path):
    for expected in ("step-000600", "step-000600-2", "step-000600-3"):
        (moved,) = move_aside(tmp_path, (str(save(tmp_path, 600)),))
        assert Path(moved.moved_to).name == expected


def test_asked_again_it_says_where_the_checkpoint_went(tmp_path: Path):
    path = save(tmp_path, 600)
    first = move_aside(tmp_path, (str(path),))
    assert move_aside(tmp_path, (str(path),)) == first
    (missing,) = move_aside(tmp_path, (str(tmp_path / "step-000700"),))
    assert (missing.moved_to, missing.reason) == ("", "it is not there")


@pytest.mark.parametrize("name", ["../step-000001", "a/b", "..", ".tm-aside", "/etc"])
def test_nothing_is_moved_from_elsewhere(tmp_path: Path, name: str):
    path = save(tmp_path, 1)
    with pytest.raises(NotBelowError):
        move_aside(tmp_path, (str(path), str(tmp_path / name)))
    assert path.exists()


# ---------------------------------------------------------------------------- hashing


def test_hashing_is_given_up_when_the_agent_ends(tmp_path: Path):
    stopped = Event()
    path = save(tmp_path, 1) / "weights.npy"
    assert hash_file(path, stopped=stopped) == blake3(FILES[path.name]).hexdigest()
    stopped.set()
    with pytest.raises(StoppedError):
        hash_file(path, stopped=stopped)
