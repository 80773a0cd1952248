"""Decides what a job file says: text in, a request out, or every fault of it at once.

    text ─ yaml_text, json_text ─▶ tree with places ─ schema, dialects ─▶ values
    values ─ template, overlay ─▶ values ─ meaning, together ─▶ spec, notices

The smallest valid file is a `name` and a `command`. Relative paths belong to the folder
of the file; `{job}` in the output and checkpoint directories becomes the job's id, so
that two jobs never share them by accident.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from trainmaster.core.errors import Fault, SpecRejectedError
from trainmaster.jobfile.document import Node, Place, Scalar, UnreadableError
from trainmaster.jobfile.installation import ANYWHERE, Site
from trainmaster.jobfile.json_text import read_json
from trainmaster.jobfile.limits import DEFAULT_TEAM, FAULTS_MAX, TEXT_BYTES_MAX
from trainmaster.jobfile.meaning import Ground, meant
from trainmaster.jobfile.merging import merged
from trainmaster.jobfile.notices import announced, refused
from trainmaster.jobfile.report import Report, TooManyFaultsError, Where
from trainmaster.jobfile.request import JobRequest
from trainmaster.jobfile.schema import PLAIN_FIELDS
from trainmaster.jobfile.together import check_together
from trainmaster.jobfile.values import Said, said_by
from trainmaster.jobfile.yaml_text import read_yaml

READINGS_KEPT: Final = 64
_NAME: Final = next(each for each in PLAIN_FIELDS if each.name == "name")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A job file as it came in; `job_name` stands in for its `name`.

    `template` is the text of a job file that says what this one leaves open, `overlay`
    the name of one of the overlays in either.
    """

    text: str
    name: str = "job file"
    directory: str = ""
    json: bool = False
    job_name: str = ""
    template: str = ""
    template_name: str = ""
    overlay: str = ""


def decoded(body: bytes, name: str) -> str:
    """Read the bytes of a job file as text. Raises SpecRejectedError."""
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = body[: error.start]
        fault = Fault(
            field="",
            message=f"is not UTF-8: byte 0x{body[error.start]:02x} cannot be read",
            line=before.count(b"\n") + 1,
            column=len(before) - before.rfind(b"\n"),
        )
        raise SpecRejectedError(source=name, faults=[fault]) from error


@lru_cache(maxsize=READINGS_KEPT)
def read(source: Source, site: Site = ANYWHERE) -> JobRequest:
    """Read a job file. Raises SpecRejectedError with every fault."""
    around = _Around(site=site, template=_template(source), report=Report())
    try:
        node = _tree(source)
    except UnreadableError as error:
        raise SpecRejectedError(source=source.name, faults=[error.fault]) from error
    request = _request(node, source, around)
    if request is None and source.json:
        around = _with_places(source, around)
    if request is None:
        raise _rejected(source.name, around.report)
    return request


def _rejected(name: str, report: Report) -> SpecRejectedError:
    faults = sorted(report.faults, key=lambda fault: (fault.line, fault.column))
    if len(faults) >= FAULTS_MAX:
        last = faults[-1]
        more = f"these are {FAULTS_MAX} faults; mend them to see the rest"
        faults.append(Fault(field="", message=more, line=last.line, column=last.column))
    return SpecRejectedError(source=name, faults=faults)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Around:
    """What a text is read with."""

    site: Site
    template: Said
    report: Report


def _template(source: Source) -> Said:
    """Read the template; what is wrong there is told of it, not of the file."""
    if not source.template:
        return Said(values={})
    report = Report()
    try:
        said = said_by(read_yaml(source.template), report)
    except UnreadableError as error:
        report.faults.append(error.fault)
    except TooManyFaultsError:
        pass  # the report has what there was room for
    else:
        if not report.faults:
            return said
    raise _rejected(source.template_name or "template", report)


def _tree(source: Source) -> Node:
    size = len(source.text.encode(errors="surrogatepass"))
    if size > TEXT_BYTES_MAX:
        message = f"has {size:,} bytes; a job file has at most {TEXT_BYTES_MAX:,}, "
        raise UnreadableError(f"{message}put data into files of its own")
    return read_json(source.text) if source.json else read_yaml(source.text)


def _with_places(source: Source, around: _Around) -> _Around:
    """Find the places in a JSON text, which nearly always is YAML too."""
    placed = replace(around, report=Report())
    try:
        _request(read_yaml(source.text), source, placed)
    except UnreadableError:
        return around
    return placed if placed.report.faults else around


def _request(node: Node, source: Source, around: _Around) -> JobRequest | None:
    try:
        return _meant(node, source, around)
    except TooManyFaultsError:
        return None  # the report has what there was room for


def _meant(node: Node, source: Source, around: _Around) -> JobRequest | None:
    report = around.report
    said = said_by(node, report)
    values = merged(around.template.values, said.values)
    values = _overlaid(values, source.overlay, report)
    values.update(_named(source, node.place, report))
    _check_program(values, said, node.place, report)
    refused(values, around.site, report)
    ground = Ground(directory=source.directory, site=around.site, report=report)
    spec = meant(values, ground)
    check_together(values, spec, report)
    if report.faults:
        return None
    marks = {
        "dialect": said.dialect,
        "template": source.template_name if source.template else "",
        "overlay": source.overlay,
    }
    return JobRequest(
        team=values.get("team", DEFAULT_TEAM),
        spec=spec.model_copy(update=marks) if any(marks.values()) else spec,
        source=source.name,
        report=report,
        notices=announced(values, around.site, report),
    )


def _overlaid(values: dict[str, Any], name: str, report: Report) -> dict[str, Any]:
    overlays: Mapping[str, Mapping[str, Any]] = values.pop("overlays", {})
    if not name:
        return values
    if name not in overlays:
        known = ", ".join(f"`{each}`" for each in overlays) or "none"
        message = f"no overlay is called `{name}` (known: {known})"
        report.wrong("overlays", message)
        return values
    return merged(values, overlays[name])


def _named(source: Source, place: Place, report: Report) -> dict[str, Any]:
    """Take the name from outside, if there is one."""
    if not source.job_name:
        return {}
    given = Scalar(text=source.job_name, plain=False)
    where = Where(name="name", place=place, report=report)
    return {"name": _NAME.kind.read(given, where) or ""}


def _check_program(
    values: dict[str, Any], said: Said, place: Place, report: Report
) -> None:
    """See that there is one name and one program; a script is a command from here."""
    if "name" not in values and not report.stands("name"):
        report.wrong("name", "`name` is missing", place)
    both = "command" in values and "script" in values
    if both:
        report.wrong("script", "`script` stands instead of `command`; keep one of them")
    found = {"command", "script"} & values.keys()
    if not found and not (report.stands("command") or report.stands("script")):
        how = (
            f": write `command:` beside `{said.dialect}:`, or submit it with "
            "`--template NAME`"
            if said.dialect
            else ""
        )
        report.wrong("command", f"`command` is missing{how}", place)
    if "script" in values:
        values["command"] = values.pop("script")
