"""Packing code: what goes in, what stays out, and that equal is equal."""

import io
import os
import tarfile
from pathlib import Path

import pytest

from trainmaster.client import archive
from trainmaster.client.archive import (
    ArchiveTooLargeError,
    NotAFolderError,
    Packed,
    pack,
)


def packed(folder: Path, *exclude: str) -> tuple[Packed, list[str]]:
    target = io.BytesIO()
    told = pack(folder, target, exclude=exclude)
    target.seek(0)
    with tarfile.open(fileobj=target, mode="r:gz") as found:
        return told, found.getnames()


def a_folder(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_equal_folders_have_equal_digests_whatever_their_times(tmp_path: Path):
    first = a_folder(tmp_path / "a", train="x", lib__model="y")
    second = a_folder(tmp_path / "b", lib__model="y", train="x")
    os.utime(second / "train", (1, 2))
    assert packed(first)[0] == packed(second)[0]


@pytest.mark.parametrize("change", ["content", "name", "mode"])
def test_another_content_name_or_mode_is_another_digest(tmp_path: Path, change: str):
    folder = a_folder(tmp_path, train="x")
    before = packed(folder)[0].digest
    match change:
        case "content":
            (folder / "train").write_text("z")
        case "name":
            (folder / "train").rename(folder / "other")
        case _:
            (folder / "train").chmod(0o755)
    assert packed(folder)[0].digest != before


def test_what_git_ignores_stays_out_and_deeper_files_decide(tmp_path: Path):
    folder = a_folder(
        tmp_path,
        train="x",
        data__big="x",
        lib__keep_log="x",
        lib__other_log="x",
    )
    (folder / ".gitignore").write_text("data/\n*_log\n")
    (folder / "lib" / ".gitignore").write_text("!keep_log\n")
    (folder / ".git").mkdir()
    (folder / ".git" / "HEAD").write_text("ref")
    assert set(packed(folder)[1]) == {
        ".gitignore",
        "train",
        "lib/.gitignore",
        "lib/keep_log",
    }


def test_the_job_files_own_excludes_stay_out(tmp_path: Path):
    folder = a_folder(tmp_path, train="x", notes_md="y")
    assert packed(folder, "notes_*")[1] == ["train"]


def test_links_are_kept_as_links_and_pipes_are_left_out(tmp_path: Path):
    folder = a_folder(tmp_path, real__file="x")
    (folder / "link").symlink_to("real")
    os.mkfifo(folder / "pipe")
    assert set(packed(folder)[1]) == {"link", "real/file"}


def test_too_much_is_refused_with_the_largest_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(archive, "BYTES_MAX", 2 * 2**20)
    folder = a_folder(tmp_path, small="x")
    (folder / "weights.bin").write_bytes(bytes(3 * 2**20))
    with pytest.raises(ArchiveTooLargeError, match=r"largest: weights\.bin \(3 MiB\)"):
        packed(folder)


def test_without_a_folder_there_is_a_clear_error(tmp_path: Path):
    with pytest.raises(NotAFolderError, match="no folder"):
        packed(tmp_path / "nowhere")
