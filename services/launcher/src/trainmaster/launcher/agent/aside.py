"""Moves checkpoints out of the framework's sight; nothing is ever deleted.

`DIR/step-000100` becomes `DIR/.tm-aside/step-000100`, or `step-000100-2` and so on when
that exists. Asked again, it says where the checkpoint went the last time.
"""

import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Final

from trainmaster.core.errors import PermanentError
from trainmaster.core.values import Rejected

ASIDE: Final = ".tm-aside"
_NUMBER: Final = re.compile(r"[0-9]+")


class NotBelowError(PermanentError):
    """A path is not directly below the directory it should be moved in."""

    def __init__(self, *, path: str, directory: str) -> None:
        super().__init__(f"{path} is not directly below {directory}; nothing was moved")


def move_aside(directory: Path, paths: tuple[str, ...]) -> tuple[Rejected, ...]:
    """Move checkpoints; raises NotBelowError before anything moves, and OSError."""
    names = [_name_below(directory, path) for path in paths]
    return tuple(_move(directory, name) for name in names)


def _name_below(directory: Path, path: str) -> str:
    given = Path(directory, path)
    if given.parent != directory or given.name in {"", ".", "..", ASIDE}:
        raise NotBelowError(path=path, directory=str(directory))
    return given.name


def _move(directory: Path, name: str) -> Rejected:
    source, aside = directory / name, directory / ASIDE
    target: Path | None
    try:
        aside.mkdir(exist_ok=True)
        free = next(each for each in _names(aside, name) if not each.exists())
        target = source.rename(free)
    except FileNotFoundError:
        target = _last(aside, name)  # somebody else moved it, or we did before
    return Rejected(
        path=str(source),
        step=_step(name),
        reason="" if target else "it is not there",
        moved_to=str(target) if target else "",
    )


def _last(aside: Path, name: str) -> Path | None:
    found = None
    for target in _names(aside, name):
        if not target.exists():
            return found
        found = target
    return found


def _names(aside: Path, name: str) -> Iterator[Path]:
    yield aside / name
    for number in count(2):
        yield aside / f"{name}-{number}"


def _step(name: str) -> int:
    found = _NUMBER.search(name)
    return int(found[0]) if found else 0
