"""Decides what fields a tree says, in the canonical form or in a dialect."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from trainmaster.jobfile.dialects.dialect import Dialect
from trainmaster.jobfile.dialects.experiment import EXPERIMENT
from trainmaster.jobfile.dialects.job import JOB
from trainmaster.jobfile.dialects.workflow import WORKFLOW
from trainmaster.jobfile.document import Node, Pairs, Scalar
from trainmaster.jobfile.groups import group
from trainmaster.jobfile.merging import common, merged
from trainmaster.jobfile.report import Report, Where
from trainmaster.jobfile.schema import FIELDS, read_fields

DIALECTS: Final[Mapping[str, Dialect]] = {
    each.name: each for each in (JOB, WORKFLOW, EXPERIMENT)
}
_BESIDE: Final = {each.name: each.kind.read for each in FIELDS}
_READERS: Final = {
    name: group({**_BESIDE, name: each.kind.read}) for name, each in DIALECTS.items()
}
_SPELT: Final = {name: each.spelt() for name, each in DIALECTS.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """The fields of a file under their canonical names, whatever its form."""

    values: Mapping[str, Any]
    dialect: str = ""


def said_by(node: Node, report: Report) -> Said:
    """Read the fields; what is wrong goes into the report."""
    if not isinstance(node, Pairs):
        found = "a word" if isinstance(node, Scalar) else "a list"
        report.wrong("", f"a job file is a group of `field: value`, not {found}")
        return Said(values={})
    top = Where(name="", place=node.place, report=report)
    name = next((pair.key for pair in node.pairs if pair.key in DIALECTS), "")
    if not name:
        return Said(values=read_fields(node, top) or {})
    report.spelt = _SPELT[name]
    beside = dict(_READERS[name](node, top) or {})
    theirs = DIALECTS[name].canonical(beside.pop(name, {}))
    for field in common(theirs, beside):
        spelt = _SPELT[name].get(field, name)
        report.wrong(field, f"`{field}` is said by `{spelt}` too; keep one of them")
    return Said(values=merged(theirs, beside), dialect=name)
