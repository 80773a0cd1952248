"""Owns the commands that only look: list, status, nodes, events, logs."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from trainmaster.cli import words
from trainmaster.cli.exits import Exit
from trainmaster.cli.meant import job_meant
from trainmaster.cli.output import Column, Format, coloured, say, show_data, show_rows
from trainmaster.cli.output import write as put
from trainmaster.cli.remote import connect
from trainmaster.cli.silence import why_nothing
from trainmaster.client.errors import NotReadyError

if TYPE_CHECKING:
    from trainmaster.client.client import Client

_NOT_OVER: Final = "queued,held,placed,starting,running,stopping,settling"
_COUNTED_MAX: Final = 1000


def list_jobs(
    data: Path | None, *, team: str, state: str, limit: int, how: Format
) -> None:
    """Show jobs."""
    with connect(data) as client:
        rows = client.jobs(team=team, state=state, limit=limit)
        show_rows(
            rows,
            job_columns(client.server_time),
            how=how,
            name=lambda row: str(row["id"]),
            empty="No jobs. Submit one: tm submit FILE",
        )


def job_columns(now: datetime | None) -> Sequence[Column]:
    """Say what a list of jobs shows."""
    return (
        Column(title="JOB", of=lambda r: words.text(r, "id")),
        Column(title="NAME", of=lambda r: words.text(r, "name")),
        Column(title="TEAM", of=lambda r: words.text(r, "team"), wide=True),
        Column(title="STATE", of=lambda r: words.text(r, "state")),
        Column(title="FOR", of=lambda r: words.age(r.get("since"), now), right=True),
        Column(title="ATTEMPT", of=lambda r: words.text(r, "attempt"), right=True),
        Column(title="STEP", of=lambda r: words.number(r, "step"), right=True),
        Column(title="LOSS", of=lambda r: words.number(r, "loss"), right=True),
        Column(title="NODES", of=words.nodes),
        Column(title="PRIORITY", of=lambda r: words.text(r, "priority"), wide=True),
        Column(title="CAUSE", of=lambda r: words.text(r, "cause"), wide=True),
        Column(
            title="SUBMITTED", of=lambda r: words.day(r.get("submitted_at")), wide=True
        ),
        Column(title="REASON", of=lambda r: words.line(r, "reason")),
    )


def list_nodes(data: Path | None, *, how: Format) -> None:
    """Show nodes."""
    with connect(data) as client:
        show_rows(
            client.nodes(),
            NODE_COLUMNS,
            how=how,
            name=lambda row: str(row["node"]),
            empty="No nodes have registered yet.",
        )


def _accelerators(row: Mapping[str, Any]) -> str:
    return f"{row.get('accelerators_used', 0)}/{row.get('accelerators', 0)}"


NODE_COLUMNS = (
    Column(title="NODE", of=lambda r: words.text(r, "node")),
    Column(title="POOL", of=lambda r: words.text(r, "pool")),
    Column(title="STATE", of=lambda r: words.text(r, "state")),
    Column(title="ACCELERATORS", of=_accelerators, right=True),
    Column(title="CPUS", of=lambda r: words.text(r, "cpus"), right=True),
    Column(title="MEMORY", of=lambda r: words.size(r.get("memory_bytes")), wide=True),
    Column(title="ADDRESS", of=lambda r: words.text(r, "address"), wide=True),
    Column(title="REASON", of=lambda r: words.line(r, "reason"), wide=True),
    Column(title="JOBS", of=lambda r: words.text(r, "jobs")),
    Column(title="BLOCKED BY", of=lambda r: words.text(r, "blocked_by")),
)


def show_job(data: Path | None, reference: str, *, how: Format) -> None:
    """Show all that is known of one job."""
    from trainmaster.cli.details import lines_of

    with connect(data) as client:
        job = job_meant(client, reference)
        if how is Format.NAME:
            put(f"{job['id']}\n")
        elif how in {Format.JSON, Format.YAML}:
            show_data(job, how)
        else:
            for each in lines_of(job, client.server_time, wide=how is Format.WIDE):
                put(f"{each}\n")


def show_server(data: Path | None, *, how: Format) -> int:
    """Show whether the server is well and how many jobs are not over."""
    with connect(data) as client:
        services = client.ready()
        well = all(state == "ready" for state in services.values())
        counts = _counts(client)
        if how in {Format.JSON, Format.YAML, Format.NAME}:
            summary = {"url": client.url, "services": services, "jobs": counts}
            show_data(summary, Format.JSON if how is Format.NAME else how)
            return Exit.OK if well else Exit.UNREACHABLE
        put(f"trainmaster at {client.url}\n")
        for name, state in services.items():
            put(f"  {name:<20} {coloured(state, state)}\n")
        put(f"jobs not over: {_counted(counts)}\n")
    if not well:
        say("Not all is ready. It tries again by itself; running jobs go on.")
    return Exit.OK if well else Exit.UNREACHABLE


def _counts(client: "Client") -> dict[str, int] | None:
    """Count the jobs that are not over; None while they cannot be read."""
    counts: dict[str, int] = {}
    try:
        for row in client.jobs(state=_NOT_OVER, limit=_COUNTED_MAX):
            counts[row["state"]] = counts.get(row["state"], 0) + 1
    except NotReadyError:
        return None
    return counts


def _counted(counts: Mapping[str, int] | None) -> str:
    if counts is None:
        return "not known now"
    return ", ".join(f"{n} {state}" for state, n in sorted(counts.items())) or "none"


def show_events(data: Path | None, reference: str, *, follow: bool, how: Format) -> int:
    """Show what happened to a job, and what happens while following."""
    from trainmaster.cli.follow import follow_events, show_event

    with connect(data) as client:
        if follow:
            return follow_events(client, reference, how=how)
        events = client.events(job_meant(client, reference)["id"])
        if how in {Format.JSON, Format.YAML}:
            show_data(events, how)
            return 0
        for event in events:
            show_event(event, how=how)
        if not events:
            say("No events yet.")
    return 0


def show_logs(
    data: Path | None,
    reference: str,
    *,
    attempt: int | None,
    rank: int | None,
    follow: bool,
) -> int:
    """Show a job's output, and what comes while following."""
    from trainmaster.cli.follow import follow_logs

    with connect(data) as client:
        if follow:
            return follow_logs(client, reference, attempt=attempt, rank=rank)
        job = job_meant(client, reference)
        text = client.logs(job["id"], attempt=attempt, rank=rank)
        put(text)
        if not text:
            say(why_nothing(job, client.server_time, attempt=attempt, rank=rank))
    return 0
