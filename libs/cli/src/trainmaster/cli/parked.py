"""Owns what the commands of parked messages do and show."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from trainmaster.cli import words
from trainmaster.cli.output import Column, Format, say, show_data, show_rows, write
from trainmaster.cli.remote import connect

_COLUMNS: Final = (
    Column(title="NUMBER", of=lambda r: words.text(r, "number"), right=True),
    Column(title="SUBJECT", of=lambda r: words.text(r, "subject")),
    Column(title="BYTES", of=lambda r: words.text(r, "bytes"), right=True),
    Column(title="REASON", of=lambda r: words.text(r, "reason")),
    Column(title="PARKED", of=lambda r: words.text(r, "at"), wide=True),
)


def list_parked(data: Path | None, *, after: int, how: Format) -> None:
    """Show what is parked, oldest first."""
    with connect(data) as client:
        show_rows(
            client.office.parked(after=after),
            _COLUMNS,
            how=how,
            name=lambda row: str(row["number"]),
            empty="Nothing is parked: all that came in was worked off.",
        )


def show_parked(data: Path | None, number: int, *, how: Format) -> None:
    """Show one message whole."""
    with connect(data) as client:
        found = client.office.parked_message(number)
    if how in {Format.JSON, Format.YAML}:
        show_data(found, how)
        return
    say(f"{found['subject']}, parked {found['at']}: {found['reason']}")
    write("".join(f"{name}: {value}\n" for name, value in found["headers"].items()))
    write(f"\n{found['text']}\n")


def replay_parked(data: Path | None, numbers: Sequence[int]) -> None:
    """Have messages said again, one after the other."""
    with connect(data) as client:
        for number in numbers:
            done = client.office.replay_parked(number)
            say(f"{number} is said again on {done['subject']}")
