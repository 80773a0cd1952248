"""Decides what a job file says: text in, a request out, or every fault of it at once.

The smallest valid file is a `name` and a `command`. Relative paths belong to the folder
of the file; `{job}` in the output and checkpoint directories becomes the job's id, so
that two jobs never share them by accident.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from trainmaster.core.errors import Fault, SpecRejectedError
from trainmaster.core.ids import JobId
from trainmaster.core.spec import JobSpec, RunAs
from trainmaster.submission.document import (
    Node,
    Pairs,
    Place,
    Scalar,
    UnreadableError,
)
from trainmaster.submission.json_text import read_json
from trainmaster.submission.meaning import check_together, filled, meant
from trainmaster.submission.report import Report, Where
from trainmaster.submission.schema import FIELDS, read_fields
from trainmaster.submission.settings import DEFAULT_TEAM, READINGS_KEPT
from trainmaster.submission.yaml_text import read_yaml


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A job file as it came in; `job_name` stands in for its `name`."""

    text: str
    name: str = "job file"
    directory: str = ""
    json: bool = False
    job_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """A job file that is right; its paths may still have `{job}` in them."""

    team: str
    spec: JobSpec
    source: str
    places: Mapping[str, Place] = field(default_factory=dict[str, Place])

    def spec_of(self, job: JobId, user: RunAs) -> JobSpec:
        """Say what exactly this job runs, as whom."""
        return filled(self.spec, job).model_copy(update={"user": user})

    def rejected(self, faults: Sequence[Fault]) -> SpecRejectedError:
        """Say what is wrong at the places of this file."""
        return SpecRejectedError(
            source=self.source, faults=[self._placed(f) for f in faults]
        )

    def _placed(self, fault: Fault) -> Fault:
        place = self.places.get(fault.field, Place(line=1, column=1))
        return Fault(
            field=fault.field,
            message=fault.message,
            line=place.line,
            column=place.column,
        )


@lru_cache(maxsize=READINGS_KEPT)
def read(source: Source) -> JobRequest:
    """Read a job file. Raises SpecRejectedError with every fault."""
    try:
        node = read_json(source.text) if source.json else read_yaml(source.text)
    except UnreadableError as error:
        fault = error.fault
        raise SpecRejectedError(source=source.name, faults=[fault]) from error
    report = Report()
    request = _request(node, source, report)
    if request is None and source.json:
        report = _with_places(source, report)
    if request is None:
        faults = sorted(report.faults, key=lambda f: (f.line, f.column))
        raise SpecRejectedError(source=source.name, faults=faults)
    return request


def _with_places(source: Source, report: Report) -> Report:
    """Find the places in a JSON text, which nearly always is YAML too."""
    placed = Report()
    try:
        _request(read_yaml(source.text), source, placed)
    except UnreadableError:
        return report
    return placed if placed.faults else report


def _request(node: Node, source: Source, report: Report) -> JobRequest | None:
    if not isinstance(node, Pairs):
        found = "a word" if isinstance(node, Scalar) else "a list"
        report.wrong("", f"a job file is a group of `field: value`, not {found}")
        return None
    top = Where(name="", place=node.place, report=report)
    values = dict(read_fields(node, top) or {})
    if source.job_name:
        given = Scalar(text=source.job_name, plain=False)
        where = Where(name="name", place=node.place, report=report)
        values["name"] = FIELDS["name"](given, where) or ""
    spec = meant(values, source.directory, report)
    for name in ("name", "command"):
        if name not in values and name not in report.places:
            report.wrong(name, f"`{name}` is missing", node.place)
    check_together(spec, report)
    if report.faults:
        return None
    return JobRequest(
        team=values.get("team", DEFAULT_TEAM),
        spec=spec,
        source=source.name,
        places=report.places,
    )
