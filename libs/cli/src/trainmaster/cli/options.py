"""Decides how the options are called that many commands have."""

from pathlib import Path
from typing import Annotated

import typer

from trainmaster.cli.output import Format

Data = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        help="The stack's data directory; TM_DATA_DIR, else ~/.trainmaster.",
    ),
]
How = Annotated[Format, typer.Option("--output", "-o", help="How to show the answer.")]
Reason = Annotated[str, typer.Option(help="Why; kept on the log.")]
