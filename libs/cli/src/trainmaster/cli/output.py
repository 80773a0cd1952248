"""Decides how answers look: a table for people, plain columns in a pipe, or data."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from trainmaster.jobfile.writing import to_yaml

Row = Mapping[str, Any]
_COLOURS: Final[Mapping[str, str]] = {
    "cancelled": "yellow",
    "draining": "yellow",
    "failed": "red",
    "held": "yellow",
    "lost": "red",
    "placed": "cyan",
    "quarantined": "red",
    "queued": "yellow",
    "ready": "green",
    "registered": "green",
    "running": "green",
    "settling": "cyan",
    "starting": "cyan",
    "stopping": "yellow",
    "succeeded": "bold green",
}


class Format(StrEnum):
    """What `-o` takes."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column: its title, and what it shows of a row."""

    title: str
    of: Callable[[Row], str]
    wide: bool = False
    right: bool = False


def show_rows(
    rows: Sequence[Row],
    columns: Sequence[Column],
    *,
    how: Format,
    name: Callable[[Row], str],
    empty: str,
) -> None:
    """Show a list in the wanted form."""
    if how is Format.NAME:
        write("".join(f"{name(row)}\n" for row in rows))
    elif how in {Format.JSON, Format.YAML}:
        show_data(rows, how)
    elif not rows:
        say(empty)
    else:
        chosen = [c for c in columns if how is Format.WIDE or not c.wide]
        cells = [[column.of(row) for column in chosen] for row in rows]
        (_pretty if sys.stdout.isatty() else _plain)(chosen, cells)


def show_data(value: Any, how: Format) -> None:
    """Show data as a program wants it."""
    if how is Format.YAML:
        write(to_yaml(value))
    else:
        write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def write(text: str) -> None:
    """Write to standard output, at once."""
    sys.stdout.write(text)
    sys.stdout.flush()


def say(text: str) -> None:
    """Say something to the person, not to the program behind the pipe."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def _plain(columns: Sequence[Column], cells: Sequence[Sequence[str]]) -> None:
    """Align columns with blanks; never cut anything off, somebody may `awk` it."""
    lines = [[column.title for column in columns], *cells]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    for line in lines:
        padded = [
            cell.rjust(width) if column.right else cell.ljust(width)
            for cell, width, column in zip(line, widths, columns, strict=True)
        ]
        write("  ".join(padded).rstrip() + "\n")


def _pretty(columns: Sequence[Column], cells: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(
            column.title,
            justify="right" if column.right else "left",
            no_wrap=column.title in {"JOB", "NODE"},
        )
    for line in cells:
        table.add_row(*(Text(cell, style=_COLOURS.get(cell, "")) for cell in line))
    Console().print(table)


def coloured(text: str, word: str) -> str:
    """Colour a text by a state's word, on a terminal."""
    codes = {"red": 31, "green": 32, "yellow": 33, "cyan": 36, "bold green": 32}
    code = codes.get(_COLOURS.get(word, ""))
    return f"\x1b[{code}m{text}\x1b[0m" if code and sys.stdout.isatty() else text
