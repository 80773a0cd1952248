"""Owns which other systems may publish, and what they are: one file says it.

    {"ci": {"team": "vision", "role": "submitter"}}

A source is a NATS user with only ingress rights, and a role on one team, or on every
team (`*`): what it asks for is judged by the table that judges tokens.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from trainmaster.core.errors import PermanentError
from trainmaster.core.ids import TOKEN
from trainmaster.core.rights import EVERY_TEAM, Grant, Role
from trainmaster.runtime.telemetry import logger

FILE: Final = "sources.json"


class SourceRow(BaseModel):
    """One source in the file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    team: str
    role: Role = Role.SUBMITTER


_ROWS: Final = TypeAdapter(dict[str, SourceRow])


class SourcesFileError(PermanentError):
    """The file of sources cannot be used."""

    def __init__(self, *, path: Path, problem: str) -> None:
        super().__init__(
            f"{path}: {problem}; mend it, or write it with `tm sources add NAME`"
        )


def read_sources(path: Path) -> Mapping[str, Grant]:
    """Read the file; one that is not there names nobody. Raises SourcesFileError."""
    try:
        rows = _ROWS.validate_json(path.read_bytes())
    except FileNotFoundError:
        return {}
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        problem = f"`{where}`: {first['msg']}"
        raise SourcesFileError(path=path, problem=problem) from error
    for name, row in rows.items():
        teams = () if row.team == EVERY_TEAM else (row.team,)
        for value in (name, *teams):
            if TOKEN.fullmatch(value) is None:
                problem = f"{value!r} is no name of a source or a team"
                raise SourcesFileError(path=path, problem=problem)
    return {name: Grant(team=row.team, role=row.role) for name, row in rows.items()}


def credentials_of(source: str, *, user: str, password: str, url: str) -> str:
    """Write down what a source connects with."""
    content = {
        "url": url,
        "user": user,
        "password": password,
        "inbox_prefix": f"_INBOX_{user}",
        "source": source,
    }
    return json.dumps(content, indent=1) + "\n"


@dataclass(slots=True)
class Sources:
    """The file, read again whenever it changes; a wrong one leaves all as it was."""

    path: Path | None
    _seen: tuple[int, int] = (0, 0)
    _grants: Mapping[str, Grant] = field(default_factory=dict[str, Grant])

    def changed(self) -> bool:
        """Tell whether the file is another than when it was last read."""
        return self._stamp() != self._seen

    def grants(self) -> Mapping[str, Grant]:
        """Say what every source is."""
        stamp = self._stamp()
        if self.path is not None and stamp != self._seen:
            self._seen = stamp
            try:
                self._grants = read_sources(self.path)
            except SourcesFileError as error:
                logger("sources").warning("sources_not_read", error=str(error))
        return self._grants

    def _stamp(self) -> tuple[int, int]:
        try:
            found = self.path.stat() if self.path is not None else None
        except FileNotFoundError:
            found = None
        return (0, 0) if found is None else (found.st_mtime_ns, found.st_ino)
