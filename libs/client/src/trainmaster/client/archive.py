"""Packs a folder of code so that equal folders give equal bytes, and names the bytes.

What `.gitignore` files and the job file exclude stays out, and so does `.git`. Times
and owners are left out, order is fixed: the digest depends on names, modes and content.
"""

import gzip
import hashlib
import os
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Final

from pathspec import GitIgnoreSpec

from trainmaster.core.errors import PermanentError

BYTES_MAX: Final = 500 * 2**20
_ALWAYS: Final = (".git",)
_IGNORE: Final = ".gitignore"
_NAMED_MAX: Final = 5


class NotAFolderError(PermanentError):
    """There is nothing to pack."""

    def __init__(self, *, folder: str) -> None:
        super().__init__(f"{folder} is no folder, so its code cannot be archived")


class ArchiveTooLargeError(PermanentError):
    """A folder holds more than an archive may; `largest` is name and bytes."""

    def __init__(
        self, *, folder: str, content_bytes: int, largest: Sequence[tuple[str, int]]
    ) -> None:
        named = ", ".join(f"{name} ({_mib(size)})" for name, size in largest)
        super().__init__(
            f"{folder} holds {_mib(content_bytes)} of files, at most {_mib(BYTES_MAX)} "
            f"are archived; the largest: {named}. Name data in .gitignore or in "
            "`source.exclude`, and read it by `data`"
        )


def _mib(size_bytes: int) -> str:
    return f"{size_bytes / 2**20:,.0f} MiB"


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """An archive on disk. `digest` is the sha256 of its bytes, 64 hex digits."""

    digest: str
    archive_bytes: int
    content_bytes: int
    files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Member:
    """One file, folder-relative, as it goes into the archive."""

    name: str
    path: Path
    size_bytes: int


def pack(folder: Path, target: IO[bytes], *, exclude: Sequence[str] = ()) -> Packed:
    """Write a folder's `tar.gz` to `target`.

    Raises NotAFolderError, and ArchiveTooLargeError with the largest files.
    """
    if not folder.is_dir():
        raise NotAFolderError(folder=str(folder))
    members = sorted(_members(folder, exclude), key=lambda member: member.name)
    content_bytes = sum(member.size_bytes for member in members)
    if content_bytes > BYTES_MAX:
        largest = sorted(members, key=lambda member: -member.size_bytes)[:_NAMED_MAX]
        raise ArchiveTooLargeError(
            folder=str(folder),
            content_bytes=content_bytes,
            largest=[(member.name, member.size_bytes) for member in largest],
        )
    hashing = _Hashing(target)
    with (
        gzip.GzipFile(fileobj=hashing, mode="wb", mtime=0, filename="") as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for member in members:
            _add(archive, member)
    return Packed(
        digest=hashing.digest.hexdigest(),
        archive_bytes=hashing.written,
        content_bytes=content_bytes,
        files=len(members),
    )


class _Hashing:
    """A file that is hashed while it is written."""

    def __init__(self, target: IO[bytes]) -> None:
        self._target = target
        self.digest = hashlib.sha256()
        self.written = 0

    def write(self, data: bytes) -> int:
        """Write on and hash."""
        self.digest.update(data)
        self.written += len(data)
        return self._target.write(data)

    def flush(self) -> None:
        """Hand on what is buffered."""
        self._target.flush()


def _members(folder: Path, exclude: Sequence[str]) -> Iterator[_Member]:
    rules = {PurePosixPath(): GitIgnoreSpec.from_lines([*_ALWAYS, *exclude])}
    for root, folders, files in os.walk(folder):
        here = PurePosixPath(Path(root).relative_to(folder).as_posix())
        if _IGNORE in files:
            text = (Path(root) / _IGNORE).read_text(errors="replace")
            own = GitIgnoreSpec.from_lines(text.splitlines())
            rules[here] = own if here.parts else rules[here] + own
        linked = [name for name in folders if (Path(root) / name).is_symlink()]
        folders[:] = [
            name
            for name in folders
            if name not in linked and not _ignored(here / name, rules, folder=True)
        ]
        for name in files + linked:
            path = Path(root) / name
            if not _ignored(here / name, rules) and _packable(path):
                size = path.lstat().st_size
                yield _Member(name=str(here / name), path=path, size_bytes=size)


def _ignored(
    name: PurePosixPath,
    rules: dict[PurePosixPath, GitIgnoreSpec],
    *,
    folder: bool = False,
) -> bool:
    """Ask the nearest rules first, as git does: a deeper file decides over others."""
    for base in (name.parent, *name.parent.parents):
        spec = rules.get(base)
        if spec is None:
            continue
        told = spec.check_file(f"{name.relative_to(base)}{'/' if folder else ''}")
        if told.include is not None:
            return told.include
    return False


def _packable(path: Path) -> bool:
    """Leave out sockets, pipes and devices."""
    return path.is_symlink() or path.is_file()


def _add(archive: tarfile.TarFile, member: _Member) -> None:
    info = archive.gettarinfo(str(member.path), arcname=member.name)
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    info.mtime = 0
    info.mode = 0o755 if info.mode & 0o100 else 0o644
    if info.isreg():
        with member.path.open("rb") as content:
            archive.addfile(info, content)
    else:
        archive.addfile(info)
