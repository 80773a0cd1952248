"""Owns the commands that want something of jobs and nodes: submit, cancel, drain."""

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trainmaster.cli import words
from trainmaster.cli.exits import Exit, UsageError, code_of
from trainmaster.cli.meant import job_meant
from trainmaster.cli.output import Format, coloured, say, show_data
from trainmaster.cli.output import write as put
from trainmaster.cli.remote import connect
from trainmaster.client.errors import NotReadyError
from trainmaster.core.errors import TrainmasterError, UnreachableError

if TYPE_CHECKING:
    from trainmaster.client.client import Client, JobFile, NodeVerb, Verb
    from trainmaster.client.shapes import Change, JobDetails, JobEvent, NodeRow, Receipt


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
    if wanted.dry_run:
        return _dry_run(data, wanted, content)
    with connect(data) as client:
        file = _job_file(wanted, content)
        receipt = client.submit(file, key=wanted.key)
        _show_receipt(receipt, wanted)
        if not (wanted.wait or wanted.follow):
            return Exit.OK
        return _stay(client, receipt, wanted)


def _dry_run(data: Path | None, wanted: Submission, content: bytes) -> int:
    """Show what would be submitted; without a server, as far as the file tells."""
    try:
        with connect(data) as client:
            told = client.validate(_job_file(wanted, content))
    except UnreachableError as error:
        from trainmaster.cli.offline import meaning_of

        told = meaning_of(_job_file(wanted, content))
        say(f"{error}\nChecked here: teams, pools, nodes and stores are not known.")
    show_data(told, Format.YAML if wanted.how is Format.TABLE else wanted.how)
    return Exit.OK


def _content(name: str) -> bytes:
    """Read the file as it is; what is wrong in it, others say."""
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
    """Cancel, hold or release jobs, one after the other, and report each.

    Returns the code of the first that was refused; the others are done all the same.
    """
    with connect(data) as client:

        def one(reference: str) -> None:
            job = job_meant(client, reference)
            if verb == "cancel" and job["state"] == "cancelled":
                told = _cancelled_before(job)
            else:
                told = client.change(verb, job["team"], job["id"], reason=reason)
            if how in {Format.JSON, Format.YAML}:
                show_data(told, how)
            elif how is Format.NAME:
                put(f"{job['id']}\n")
            else:
                done = _DONE[verb] if told["changed"] else told["message"]
                put(f"{job.get('name', '')} ({job['id']}): {done}\n")

        return _each(references, one)


def _each(names: Iterable[str], call: Callable[[str], None]) -> int:
    """Do something for each; a server that is gone is gone for the others as well."""
    code: int = Exit.OK
    for name in names:
        try:
            call(name)
        except (UnreachableError, NotReadyError):
            raise
        except TrainmasterError as error:
            say(f"tm: {error}")
            code = code or code_of(error)
    return code


def _cancelled_before(job: "JobDetails") -> "Change":
    """Answer for a job that is over and perhaps archived: there it is not asked."""
    message = "it is cancelled already, nothing was changed"
    return {
        "job": job["id"],
        "team": job["team"],
        "changed": False,
        "seq": 0,
        "message": message,
    }


_DONE = {
    "cancel": "cancel requested",
    "hold": "held",
    "release": "released",
    "drain": "gets no new work",
    "undrain": "in service again",
}


def change_nodes(
    data: Path | None,
    verb: "NodeVerb",
    names: Sequence[str],
    *,
    reason: str,
    how: Format,
) -> None:
    """Drain nodes or use them again, one after the other; all must be there."""
    with connect(data) as client:
        rows = client.nodes()
        for pool, node in [_place_of(name, rows) for name in names]:
            told = client.change_node(verb, pool, node, reason=reason)
            if how in {Format.JSON, Format.YAML}:
                show_data(told, how)
            elif how is Format.NAME:
                put(f"{node}\n")
            else:
                done = _DONE[verb] if told["changed"] else told["message"]
                put(f"{node} ({pool}): {done}\n")


def _place_of(name: str, rows: Sequence["NodeRow"]) -> tuple[str, str]:
    """Find a node by its name, or by `pool/name` where pools have equal names."""
    pool, _, node = name.rpartition("/")
    found = [r for r in rows if r["node"] == node and pool in {"", r["pool"]}]
    if len(found) == 1:
        return found[0]["pool"], node
    known = ", ".join(sorted(f"{r['pool']}/{r['node']}" for r in found or rows))
    problem = f"{len(found)} nodes are called {name}" if found else f"no node {name}"
    raise UsageError(problem=problem, hint=f"name one of: {known or 'none is there'}")
