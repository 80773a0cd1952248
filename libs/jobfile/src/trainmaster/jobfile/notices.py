"""Decides what is refused as long as nobody acts on it, and what somebody should know.

Nothing that a file says is dropped in silence: it is acted on, refused, or told here.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from trainmaster.jobfile.installation import Notice, Site
from trainmaster.jobfile.meaning import guessed_launch, starter
from trainmaster.jobfile.report import Report
from trainmaster.jobfile.schema import PLAIN_FIELDS
from trainmaster.jobfile.table import Acts, as_group, said

Values = Mapping[str, Any]


def refused(values: Values, site: Site, report: Report) -> None:
    """Report the fields without which it would be another job."""
    for name, field in said(values, PLAIN_FIELDS):
        if field.acts is Acts.REFUSED and name not in site.offers:
            message = f"`{name}` cannot be honoured by this installation yet"
            report.wrong(name, f"{message}: {field.meanwhile}")


def announced(values: Values, site: Site, report: Report) -> tuple[Notice, ...]:
    """List what somebody should know of a file that is right."""
    every = (
        *_recorded(values, site),
        *_launched(values),
        *_shared(values),
        *_elastic(values),
    )
    return tuple(_spelt(name, message, report) for name, message in every)


def _spelt(name: str, message: str, report: Report) -> Notice:
    theirs = report.name_of(name)
    return Notice(
        field=theirs,
        message=f"`{theirs}` {message}",
        place=report.place_of(theirs),
    )


def _recorded(values: Values, site: Site) -> Iterator[tuple[str, str]]:
    for name, field in said(values, PLAIN_FIELDS):
        if field.acts is Acts.ANNOUNCED and name not in site.offers:
            yield name, f"is only recorded: {field.meanwhile}"


def _launched(values: Values) -> Iterator[tuple[str, str]]:
    program = starter(values)
    if program and "launch" not in values:
        launch = guessed_launch(values).value
        yield "launch", f"is `{launch}`: `{program}` starts the ranks itself"


def _shared(values: Values) -> Iterator[tuple[str, str]]:
    places = (
        ("output_directory", values.get("output_directory", "")),
        ("checkpoint.directory", values.get("checkpoint", {}).get("directory", "")),
    )
    for name, path in places:
        if path and "{job}" not in path:
            yield name, "has no `{job}`: the next job of this file writes there too"


def _elastic(values: Values) -> Iterator[tuple[str, str]]:
    nodes = as_group(values.get("nodes"))
    if nodes is not None:
        fewest = nodes.get("min")
        yield "nodes", f"is {fewest} for the whole job: it does not grow or shrink yet"
