"""Decides which checkpoints below a directory are whole: by content, never by name.

The plain layout is `step-NNNNNN/manifest.json` with every file's size and BLAKE3. What
a manifest vouches for is read and hashed; a repeated look hashes only what changed.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Final, Literal

from blake3 import blake3
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from trainmaster.core.messages import ScannedCheckpoint
from trainmaster.launcher.agent.hashing import hash_file

FORMAT: Final = "trainmaster-plain-v1"
MANIFEST: Final = "manifest.json"
_NAME: Final = re.compile(r"step-(?P<step>[0-9]{1,9})")
_PROBLEMS_NAMED_MAX: Final = 3
_MANIFEST_BYTES_MAX: Final = 64 * 2**20

HashFile = Callable[[Path], str]
Fingerprint = tuple[tuple[str, int, int], ...]
"""Path, size and time of everything a checkpoint is made of; size -1 for missing."""


class ManifestFile(BaseModel):
    """One file that a manifest vouches for."""

    model_config = ConfigDict(frozen=True)

    path: str
    bytes: int = Field(ge=0)
    blake3: str


class Manifest(BaseModel):
    """What a whole checkpoint says of itself; written last."""

    model_config = ConfigDict(frozen=True)

    format: Literal["trainmaster-plain-v1"]
    step: int
    world_size: int = 0
    files: tuple[ManifestFile, ...] = Field(min_length=1)

    @property
    def digest(self) -> str:
        """Name the content: equal for equal files, whatever their order."""
        lines = sorted(f"{f.path}\n{f.bytes}\n{f.blake3}\n" for f in self.files)
        return blake3("".join(lines).encode()).hexdigest()


class Scanner:
    """Scans directories, and remembers what it found in them."""

    def __init__(self, *, hash_file: HashFile = hash_file) -> None:
        self._hash_file = hash_file
        self._known: dict[Path, tuple[Fingerprint, ScannedCheckpoint]] = {}

    def scan(self, directory: Path) -> tuple[ScannedCheckpoint, ...]:
        """Judge every checkpoint, the oldest step first; raises OSError."""
        paths = sorted(_candidates(directory), key=lambda path: (_step(path), path))
        self._known = {
            path: known
            for path, known in self._known.items()
            if path.parent != directory or path in paths
        }
        return tuple(self._judge(path) for path in paths)

    def _judge(self, path: Path) -> ScannedCheckpoint:
        manifest = read_manifest(path)
        named = manifest.files if isinstance(manifest, Manifest) else ()
        # before the content: what changes meanwhile is looked at again next time
        fingerprint = _fingerprint(path, [MANIFEST, *(file.path for file in named)])
        known = self._known.get(path)
        if known is not None and known[0] == fingerprint:
            return known[1]
        judged = judge(path, manifest, self._hash_file)
        judged = judged.model_copy(update={"saved_at": _saved_at(fingerprint)})
        self._known[path] = fingerprint, judged
        return judged


def _saved_at(fingerprint: Fingerprint) -> datetime | None:
    """Say when the manifest was written, on this node's clock: it is written last."""
    (_, size, nanoseconds), *_ = fingerprint
    return None if size < 0 else datetime.fromtimestamp(nanoseconds / 1e9, UTC)


def _candidates(directory: Path) -> Iterator[Path]:
    if not directory.exists():
        return  # nothing was saved yet
    for path in directory.iterdir():
        if _NAME.fullmatch(path.name) and path.is_dir():
            yield path


def _step(path: Path) -> int:
    found = _NAME.fullmatch(path.name)
    return int(found["step"]) if found else 0


def read_manifest(path: Path) -> Manifest | str:
    """Read what a checkpoint says of itself, or say why that cannot be used."""
    file = path / MANIFEST
    try:
        if file.stat().st_size > _MANIFEST_BYTES_MAX:
            return f"{MANIFEST} has {file.stat().st_size:,} bytes"
        return Manifest.model_validate_json(file.read_bytes())
    except FileNotFoundError:
        return f"no {MANIFEST}: its save never finished"
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        return (
            f"{MANIFEST} is not usable: {where + ': ' if where else ''}{first['msg']}"
        )
    except OSError as error:
        return f"{MANIFEST}: {error.strerror}"


def judge(
    path: Path, manifest: Manifest | str, hash_file: HashFile
) -> ScannedCheckpoint:
    """Compare a checkpoint with its manifest."""
    step = _step(path)
    if isinstance(manifest, str):
        return ScannedCheckpoint(path=str(path), step=step, problem=manifest)
    problems = list(_problems(path, manifest, hash_file))
    return ScannedCheckpoint(
        path=str(path),
        step=step,
        format=manifest.format,
        files=len(manifest.files),
        bytes=sum(file.bytes for file in manifest.files),
        digest="" if problems else manifest.digest,
        problem=_shortly(problems),
    )


def _shortly(problems: Sequence[str]) -> str:
    more = len(problems) - _PROBLEMS_NAMED_MAX
    named = "; ".join(problems[:_PROBLEMS_NAMED_MAX])
    return f"{named}; and {more} more" if more > 0 else named


def _problems(path: Path, manifest: Manifest, hash_file: HashFile) -> Iterator[str]:
    if manifest.step != _step(path):
        yield f"its manifest is of step {manifest.step}"
    for file in manifest.files:
        problem = _problem(path, file, hash_file)
        if problem:
            yield problem


def _problem(directory: Path, file: ManifestFile, hash_file: HashFile) -> str:
    if not _stays_inside(directory, file.path):
        return f"{file.path} is outside of the checkpoint"
    path = directory / file.path
    try:
        size = path.stat().st_size
        if size != file.bytes:
            return f"{file.path} has {size:,} of {file.bytes:,} bytes"
        if hash_file(path) != file.blake3:
            return f"{file.path} is not what was saved: its BLAKE3 differs"
    except FileNotFoundError:
        return f"{file.path} is missing"
    except OSError as error:
        return f"{file.path}: {error.strerror}"
    return ""


def _stays_inside(directory: Path, name: str) -> bool:
    """Whether a name, and what it links to, is below the checkpoint."""
    relative = PurePosixPath(name)
    if relative.is_absolute() or ".." in relative.parts or not relative.parts:
        return False
    real = os.path.realpath(directory / name)
    return Path(real).is_relative_to(os.path.realpath(directory))


def _fingerprint(directory: Path, names: Sequence[str]) -> Fingerprint:
    return tuple((name, *_size_and_time(directory / name)) for name in names)


def _size_and_time(path: Path) -> tuple[int, int]:
    try:
        stat = path.stat()
    except OSError:
        return -1, 0
    return stat.st_size, stat.st_mtime_ns
