"""Decides what is wrong with what another system says, field by field. Pure."""

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Final

from trainmaster.core.errors import Fault
from trainmaster.core.ids import TOKEN
from trainmaster.core.ingress import JobRequested, MetricReported, NodeReported
from trainmaster.core.record import Job
from trainmaster.submission.ingress.settings import (
    CHECKS_PER_NODE_MAX,
    EVIDENCE_LINES_MAX,
    RANK_MAX,
    TEXT_CHARACTERS_MAX,
    VALUE_NAME_CHARACTERS_MAX,
    VALUES_MAX,
)

_FORMATS: Final = ("yaml", "json")


def is_json(said: JobRequested) -> bool:
    """Tell whether the text is JSON; without a word of it, by its beginning."""
    return said.format == "json" or (
        not said.format and said.file.lstrip().startswith("{")
    )


def job_faults(said: JobRequested) -> Iterator[Fault]:
    """Say what is wrong beside the file itself."""
    if not said.file.strip():
        message = "it is missing: send the text of a job file"
        yield Fault(field="file", message=message)
    if said.format not in {"", *_FORMATS}:
        message = f"{said.format!r} is not read; it is one of {', '.join(_FORMATS)}"
        yield Fault(field="format", message=message)
    plain = said.directory.isprintable() and PurePosixPath(said.directory).is_absolute()
    if said.directory and not plain:
        message = f"{said.directory!r} is no absolute path"
        yield Fault(field="directory", message=message)


def is_below(path: str, directory: str) -> bool:
    """Tell whether a path lies in a directory, however it is spelled."""
    found = PurePosixPath(path)
    return ".." not in found.parts and found.is_relative_to(PurePosixPath(directory))


def metric_faults(said: MetricReported, job: Job) -> Iterator[Fault]:
    """Say what is wrong with reported metrics."""
    if not job.attempt:
        message = "it has not been placed, so no rank of it can have reached anything"
        yield Fault(field="job", message=message)
    if not 0 <= said.attempt <= job.attempt:
        message = f"{said.attempt} is none; the newest is {job.attempt}"
        yield Fault(field="attempt", message=message)
    if not 0 <= said.rank <= RANK_MAX:
        yield Fault(field="rank", message=f"{said.rank} is not from 0 to {RANK_MAX}")
    if said.step < 0:
        yield Fault(field="step", message=f"{said.step} is below 0")
    if not 0 < len(said.values) <= VALUES_MAX:
        message = f"there are {len(said.values)}; send 1 to {VALUES_MAX}"
        yield Fault(field="values", message=message)
    for name in said.values:
        if not (name.isprintable() and 0 < len(name) <= VALUE_NAME_CHARACTERS_MAX):
            yield Fault(field="values", message=f"{name[:50]!r} is no usable name")


def node_faults(said: NodeReported, problems: Mapping[str, str]) -> Iterator[Fault]:
    """Say what is wrong with a report about a node that has these problems."""
    if TOKEN.fullmatch(said.check) is None:
        message = "name the check with 1 to 64 letters, digits, `_` or `-`"
        yield Fault(field="check", message=message)
    elif len({said.check, *problems}) > CHECKS_PER_NODE_MAX:
        message = f"{CHECKS_PER_NODE_MAX} checks have found something already"
        yield Fault(field="check", message=message)
    for field, value in (("problem", said.problem), *_lines(said)):
        if len(value) > TEXT_CHARACTERS_MAX:
            message = f"it is longer than {TEXT_CHARACTERS_MAX} characters"
            yield Fault(field=field, message=message)
    if len(said.evidence) > EVIDENCE_LINES_MAX:
        message = f"it has more than {EVIDENCE_LINES_MAX} lines"
        yield Fault(field="evidence", message=message)


def _lines(said: NodeReported) -> Iterator[tuple[str, str]]:
    return ((f"evidence.{n}", line) for n, line in enumerate(said.evidence))
