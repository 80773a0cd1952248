"""Checks a node for an attempt with the eyes of the job's user, and collects versions.

Runs as that user, in a thread or a process of its own (`hands`). Everything is looked
at each time but contents, which are hashed again only when size or time changed.
"""

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import Field

from trainmaster.core.facts import CheckFailure
from trainmaster.core.model import Message
from trainmaster.launcher.agent.hashing import hash_file

HASHED_BYTES_MAX: Final = 64 * 2**20
"""A larger file is compared by its size: it is data, not a program."""
_KEPT_MAX: Final = 256
_PYTHON: Final = re.compile(r"python(?P<version>[0-9]+(\.[0-9]+)*)?")
_VENV_VERSION: Final = re.compile(
    r"^version(?:_info)?\s*=\s*(?P<version>\S+)", re.MULTILINE
)


class Examination(Message):
    """What to look at; `directories`, by field, are made if need be."""

    command: tuple[str, ...] = ()
    search_path: str = ""
    work_directory: str = ""
    directories: dict[str, str] = Field(default_factory=dict)


class Examined(Message):
    """What was seen."""

    failure: CheckFailure | None = None
    versions: dict[str, str] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _File:
    """A file's content as far as it can be told without reading it."""

    path: Path
    size: int
    mtime_ns: int


class Examiner:
    """Examines, and remembers what files hashed to."""

    def __init__(self) -> None:
        self._hashes: dict[_File, str] = {}

    def examine(self, request: Examination) -> Examined:
        """Look at everything; the first thing that is wrong is the answer."""
        for failure in _failures(request):
            return Examined(failure=failure)
        program = resolve(request)
        if program is None:
            return Examined(failure=_no_program(request))
        try:
            return Examined(versions=self._versions(request, program))
        except OSError as error:
            return Examined(failure=_unreadable(error))

    def _versions(self, request: Examination, program: Path) -> dict[str, str]:
        source = _script(request) or program
        versions = {"program": self._hash(source)}
        python = python_version(program)
        return versions | ({"python": python} if python else {})

    def _hash(self, path: Path) -> str:
        stat = path.stat()
        if stat.st_size > HASHED_BYTES_MAX:
            return f"{stat.st_size} bytes"
        file = _File(path, stat.st_size, stat.st_mtime_ns)
        known = self._hashes.get(file)
        if known is None:
            known = hash_file(path)
            self._hashes[file] = known
            while len(self._hashes) > _KEPT_MAX:
                del self._hashes[next(iter(self._hashes))]
        return known


def _failures(request: Examination) -> Iterator[CheckFailure]:
    work = Path(request.work_directory)
    if not work.is_absolute():
        yield _not_absolute("work_directory", request.work_directory)
    elif not (work.is_dir() and os.access(work, os.X_OK)):
        seen = "not a directory this user can enter" if work.exists() else "not there"
        yield CheckFailure(
            check="work directory",
            field="work_directory",
            expected="a directory",
            seen=f"{work} is {seen}",
        )
    for field, directory in request.directories.items():
        failure = _make(field, directory)
        if failure is not None:
            yield failure


def _make(field: str, directory: str) -> CheckFailure | None:
    """Make a directory and try whether files can be made in it."""
    path = Path(directory)
    if not path.is_absolute():
        return _not_absolute(field, directory)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return CheckFailure(
            check="directory", field=field, seen=f"{error.filename}: {error.strerror}"
        )
    if not os.access(path, os.W_OK | os.X_OK):
        return CheckFailure(
            check="directory", field=field, seen=f"{path} cannot be written to"
        )
    return None


def _not_absolute(field: str, seen: str) -> CheckFailure:
    return CheckFailure(
        check="directory",
        field=field,
        expected="an absolute path",
        seen=seen or "nothing",
    )


def _unreadable(error: OSError) -> CheckFailure:
    return CheckFailure(
        check="program", field="command", seen=f"{error.filename}: {error.strerror}"
    )


def resolve(request: Examination) -> Path | None:
    """Find the program as `exec` will, from the work directory."""
    name = request.command[0] if request.command else ""
    if "/" not in name:
        found = shutil.which(name, path=request.search_path) if name else None
        return None if found is None else Path(request.work_directory, found)
    path = Path(request.work_directory, name)
    return path if path.is_file() and os.access(path, os.X_OK) else None


def _no_program(request: Examination) -> CheckFailure:
    name = request.command[0] if request.command else ""
    path = Path(request.work_directory, name)
    if not name:
        seen = "the command is empty"
    elif "/" not in name:
        seen = f"no executable {name!r} on PATH"
    elif path.is_file():
        seen = f"{path} is not executable"
    else:
        seen = f"no file {path}"
    evidence = f"PATH={request.search_path}" if name and "/" not in name else ""
    return CheckFailure(check="program", field="command", seen=seen, evidence=evidence)


def _script(request: Examination) -> Path | None:
    """Find the first argument that is a file: of `python train.py`, the latter."""
    for argument in request.command[1:]:
        path = Path(request.work_directory, argument)
        if not argument.startswith("-") and path.is_file():
            return path
    return None


def python_version(program: Path) -> str:
    """Read an interpreter's version without running it; "" for other programs."""
    if _PYTHON.fullmatch(program.name) is None:
        return ""
    try:
        found = _VENV_VERSION.search((program.parents[1] / "pyvenv.cfg").read_text())
    except OSError:
        found = None
    found = found or _PYTHON.fullmatch(program.resolve().name)
    return (found["version"] or "") if found else ""
