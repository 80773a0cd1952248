"""Decides what no field alone can tell: which do not go together, and why."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from trainmaster.core.spec import JobSpec, Launch
from trainmaster.jobfile.report import Report

_Check = Callable[[JobSpec], bool]
_BY_DIRECTORY: Final = "needs `checkpoint.directory`"
_TOGETHER: Final[tuple[tuple[str, _Check, str], ...]] = (
    (
        "ranks_per_node",
        lambda s: s.launch is Launch.ONCE_PER_NODE and s.ranks_per_node > 1,
        "must be 1 with `launch: once_per_node`: the command starts the others",
    ),
    (
        "checkpoint.resume_from",
        lambda s: bool(s.checkpoint.resume_from and not s.checkpoint.directory),
        f"{_BY_DIRECTORY}, where the job then saves",
    ),
    (
        "checkpoint.keep",
        lambda s: (
            bool(s.checkpoint.keep.to_json() != b"{}") and not s.checkpoint.directory
        ),
        f"{_BY_DIRECTORY}: nothing else is kept",
    ),
    (
        "checkpoint.keep.best",
        lambda s: bool(s.checkpoint.keep.best and not s.checkpoint.keep.metric),
        "needs `checkpoint.keep.metric`, which says what is best",
    ),
    (
        "success.checkpoint",
        lambda s: s.success.checkpoint and not s.checkpoint.directory,
        f"{_BY_DIRECTORY}: without it no checkpoint is looked for",
    ),
    (
        "success.step",
        lambda s: bool(s.success.step and not s.checkpoint.directory),
        f"{_BY_DIRECTORY}: a verified checkpoint proves the step",
    ),
    (
        "total_limit",
        lambda s: 0 < s.total_limit_seconds < s.time_limit_seconds,
        "must not be shorter than `time_limit`, the limit of one attempt",
    ),
    (
        "nodes.min",
        lambda s: s.node_range.min > s.node_range.max > 0,
        "must not be more than `nodes.max`",
    ),
    (
        "work_directory.revision",
        lambda s: bool(s.source.revision and not s.source.git),
        "needs `work_directory.git`, the repository it is of",
    ),
    (
        "work_directory.credentials",
        lambda s: bool(s.source.credentials and not s.source.git),
        "needs `work_directory.git`, the repository it opens",
    ),
    (
        "work_directory.exclude",
        lambda s: bool(s.source.exclude and not s.source.archive),
        "needs `work_directory.archive`, which it is left out of",
    ),
    (
        "work_directory.directory",
        lambda s: bool(s.source.directory and not (s.source.archive or s.source.git)),
        "needs `work_directory.archive` or `work_directory.git`: it is a part of one",
    ),
    (
        "work_directory.git",
        lambda s: bool(s.source.git and s.source.archive),
        "cannot be beside `work_directory.archive`: the code is one or the other",
    ),
)
"""The field to blame, when it is wrong, and why."""


def check_together(values: Mapping[str, Any], spec: JobSpec, report: Report) -> None:
    """Report fields that do not go together; one that is wrong already is left out."""
    for name, wrong, message in _TOGETHER:
        if wrong(spec) and not report.blamed(name):
            report.wrong(name, f"`{name}` {message}")
    if not report.blamed("ranks_per_node"):
        for message in _sharing(spec, report):
            report.wrong("ranks_per_node", message)
    for group in ("env", "parameters"):
        for name, value in values.get(group, {}).items():
            if value.startswith("secret://"):
                field = f"{group}.{name}"
                report.wrong(
                    field, f"`{field}` names a secret: move the line to `secrets`"
                )


def _sharing(spec: JobSpec, report: Report) -> Iterator[str]:
    """Ranks have whole accelerators, and all of them the same number."""
    ranks, devices = spec.ranks_per_node, spec.accelerators_per_node
    if spec.launch is not Launch.PER_RANK or not devices or devices % ranks == 0:
        return
    theirs = report.name_of("accelerators_per_node")
    said = f"`ranks_per_node` is {ranks:,}, which does not divide"
    right = [n for n in range(1, devices + 1) if devices % n == 0]
    nearest = min(right, key=lambda n: (abs(n - ranks), n))
    yield (
        f"{said} `{theirs}: {devices:,}`: every rank has the same number of whole "
        f"accelerators. Did you mean `{nearest}`?"
    )
