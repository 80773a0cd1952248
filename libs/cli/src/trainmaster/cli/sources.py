"""Owns the file of other systems that may publish: `sources.json` beside the stack.

The stack reads it, lets them in and writes down what each connects with. It looks at
the file every second, so nothing need be restarted.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from trainmaster.cli import words
from trainmaster.cli.exits import UsageError
from trainmaster.cli.output import Column, Format, say, show_rows
from trainmaster.client.credentials import data_directory
from trainmaster.core.errors import NotFoundError
from trainmaster.core.ids import TOKEN

_FILE: Final = "sources.json"
_COLUMNS: Final = (
    Column(title="SOURCE", of=lambda r: words.text(r, "source")),
    Column(title="TEAM", of=lambda r: words.text(r, "team")),
    Column(title="ROLE", of=lambda r: words.text(r, "role")),
    Column(title="CREDENTIALS", of=lambda r: words.text(r, "credentials")),
)
_Rows = dict[str, Mapping[str, Any]]


def list_sources(data: Path | None, *, how: Format) -> None:
    """Show who may publish."""
    folder = data_directory(data, os.environ)
    rows = [
        {"source": name, **row, "credentials": str(_credentials(folder, name))}
        for name, row in sorted(_read(folder).items())
    ]
    show_rows(
        rows,
        _COLUMNS,
        how=how,
        name=lambda row: str(row["source"]),
        empty="No other system may publish: tm sources add NAME",
    )


def add_source(data: Path | None, name: str, *, team: str, role: str) -> None:
    """Let a system publish, or change what it is."""
    if TOKEN.fullmatch(name) is None:
        raise UsageError(
            problem=f"a source cannot be called {name!r}",
            hint="take 1 to 64 letters, digits, `_` or `-`",
        )
    folder = data_directory(data, os.environ)
    if not folder.is_dir():
        raise UsageError(
            problem=f"there is no data directory {folder}",
            hint="run `tm up` there first, or name another with --data-dir",
        )
    _write(folder, {**_read(folder), name: {"team": team, "role": role}})
    say(
        f"`{name}` may publish on tm.in.{name}.> as {role} on {team}. A running stack "
        f"lets it in within a second, with {_credentials(folder, name)}"
    )


def remove_source(data: Path | None, name: str) -> None:
    """Let a system publish no more. Raises NotFoundError."""
    folder = data_directory(data, os.environ)
    rows = _read(folder)
    if name not in rows:
        raise NotFoundError(kind="source", name=name, hint="see `tm sources list`")
    del rows[name]
    _write(folder, rows)
    say(f"`{name}` may publish no more; a running stack puts it out within a second")


def _credentials(folder: Path, name: str) -> Path:
    return folder / "sources" / f"{name}.json"


def _read(folder: Path) -> _Rows:
    path = folder / _FILE
    try:
        rows: _Rows = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise UsageError(
            problem=f"{path} is no JSON: {error}", hint="mend it or delete it"
        ) from error
    return rows


def _write(folder: Path, rows: _Rows) -> None:
    """Replace the file whole: the stack may read it at any time."""
    draft = folder / f".{_FILE}.{os.getpid()}"
    draft.write_text(json.dumps(rows, indent=1) + "\n")
    draft.replace(folder / _FILE)
