"""Owns the commands that want something: submit, cancel, hold, release."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trainmaster.cli import words
from trainmaster.cli.exits import Exit, UsageError
from trainmaster.cli.output import Format, coloured, say, show_data
from trainmaster.cli.output import write as put
from trainmaster.cli.remote import connect

if TYPE_CHECKING:
    from trainmaster.client.client import Client, JobFile, Verb
    from trainmaster.client.shapes import JobEvent, Receipt


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """How a job file is to be submitted, and what to do until it is over."""

    file: str
    name: str = ""
    key: str = ""
    dry_run: bool = False
    wait: bool = False
    follow: bool = False
    timeout_seconds: float = 0.0
    parsable: bool = False
    how: Format = Format.TABLE


def submit(data: Path | None, wanted: Submission) -> int:
    """Submit a job file and, if wanted, stay until the job is over."""
    content = _content(wanted.file)
    with connect(data) as client:
        file = _job_file(wanted, content)
        if wanted.dry_run:
            how = Format.YAML if wanted.how is Format.TABLE else wanted.how
            show_data(client.validate(file), how)
            return Exit.OK
        receipt = client.submit(file, key=wanted.key)
        _show_receipt(receipt, wanted)
        if not (wanted.wait or wanted.follow):
            return Exit.OK
        return _stay(client, receipt, wanted)


def _content(name: str) -> bytes:
    """Read the file as it is; what is wrong in it, the server says."""
    if name == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise UsageError(
            problem=f"{name}: {error.strerror or error}",
            hint="name a job file, or `-` for standard input",
        ) from error


def _job_file(wanted: Submission, content: bytes) -> "JobFile":
    from trainmaster.client.client import JobFile

    piped = wanted.file == "-"
    folder = Path.cwd() if piped else Path(os.path.abspath(wanted.file)).parent  # noqa: PTH100 - resolve() would follow links that the nodes see otherwise
    return JobFile(
        content=content,
        name="standard input" if piped else wanted.file,
        directory=str(folder),
        json=wanted.file.endswith(".json"),
        job_name=wanted.name,
    )


def _show_receipt(receipt: "Receipt", wanted: Submission) -> None:
    job = receipt["job"]
    if wanted.parsable or wanted.how is Format.NAME:
        put(f"{job}\n")
    elif wanted.how in {Format.JSON, Format.YAML}:
        show_data(receipt, wanted.how)
    else:
        put(f"Submitted {receipt['name']} as {job} (team {receipt['team']}).\n")
        if sys.stderr.isatty() and not wanted.follow:
            say(f"Watch it: tm logs -f {job}, tm status {job}")


def _stay(client: "Client", receipt: "Receipt", wanted: Submission) -> int:
    from trainmaster.cli.follow import Wish, until_over

    quiet = wanted.parsable or wanted.how is not Format.TABLE
    wish = Wish(
        events=wanted.follow and not quiet,
        logs=wanted.follow and not quiet,
        seconds=wanted.timeout_seconds,
    )
    over = until_over(client, receipt["job"], wish)
    if over is None:
        return Exit.DETACHED
    if not quiet:
        _show_end(receipt, over)
    return Exit.OK if over["type"] == "succeeded" else Exit.FAILED


def _show_end(receipt: "Receipt", over: "JobEvent") -> None:
    kind, summary = over["type"], words.line(over, "summary")
    told = summary if summary.startswith(kind) else f"{kind}: {summary}"
    shown = coloured(told.removesuffix(f": {words.NONE}"), kind)
    put(f"{receipt['name']} ({receipt['job']}) {shown}\n")


def change(
    data: Path | None,
    verb: "Verb",
    references: Sequence[str],
    *,
    reason: str,
    how: Format,
) -> int:
    """Cancel, hold or release jobs, one after the other."""
    with connect(data) as client:
        for reference in references:
            job = client.job(reference)
            told = client.change(verb, job["team"], job["id"], reason=reason)
            if how in {Format.JSON, Format.YAML}:
                show_data(told, how)
            elif how is Format.NAME:
                put(f"{job['id']}\n")
            else:
                done = _DONE[verb] if told["changed"] else told["message"]
                put(f"{job.get('name', '')} ({job['id']}): {done}\n")
    return Exit.OK


_DONE = {
    "cancel": "cancel requested",
    "hold": "held",
    "release": "released",
}
