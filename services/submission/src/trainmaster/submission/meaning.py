"""Decides what a job file means: defaults, absolute paths, what must fit together."""

import posixpath
from collections.abc import Callable, Mapping
from typing import Any, Final

from trainmaster.core.ids import JobId
from trainmaster.core.spec import CheckpointSpec, JobSpec, Launch, SuccessSpec
from trainmaster.submission.report import Report
from trainmaster.submission.settings import DEFAULT_POOL

_RENAMED: Final = {
    "memory_per_node": "memory_bytes_per_node",
    "retries": "retries_max",
    "time_limit": "time_limit_seconds",
    "total_limit": "total_limit_seconds",
    "stop_grace": "stop_grace_seconds",
}
_DERIVED: Final = frozenset({"team", "checkpoint", "success"})
_OUTPUT: Final = "tm-runs/{job}"


def meant(values: Mapping[str, Any], directory: str, report: Report) -> JobSpec:
    """Fill in what the file leaves open; `directory` is where the file lies."""
    work = _joined(directory, values.get("work_directory", ""))
    if not posixpath.isabs(work):
        report.wrong(
            "work_directory",
            "`work_directory` must be absolute here: the request names no folder",
        )
    launch = Launch(values.get("launch", Launch.PER_RANK))
    data: str = values.get("data_directory", "")
    output = _joined(work, values.get("output_directory", _OUTPUT))
    plain = {_RENAMED.get(k, k): v for k, v in values.items() if k not in _DERIVED}
    derived = {
        "work_directory": work,
        "launch": launch,
        "ranks_per_node": _ranks_per_node(values, launch),
        "checkpoint": _checkpoint(values.get("checkpoint", {}), work),
        "success": SuccessSpec.model_validate(values.get("success", {})),
        "output_directory": output,
        "data_directory": _joined(work, data) if data else "",
    }
    return JobSpec.model_validate({"pool": DEFAULT_POOL, **plain, **derived})


def _ranks_per_node(values: Mapping[str, Any], launch: Launch) -> int:
    """One rank for each accelerator, unless the command starts the ranks itself."""
    ranks: int | None = values.get("ranks_per_node")
    if ranks is not None:
        return ranks
    devices: int = values.get("accelerators_per_node", 0)
    return 1 if launch is Launch.ONCE_PER_NODE else devices or 1


def _checkpoint(values: Mapping[str, str], work: str) -> CheckpointSpec:
    placed = {name: _joined(work, path) for name, path in values.items()}
    return CheckpointSpec.model_validate(placed)


def _joined(base: str, path: str) -> str:
    """Place a path in a folder; an absolute one stays where it is."""
    return posixpath.normpath(posixpath.join(base, path))


def filled(spec: JobSpec, job: JobId) -> JobSpec:
    """Put the job's id where the paths want it."""

    def fill(path: str) -> str:
        return path.replace("{job}", job)

    checkpoint = spec.checkpoint
    return spec.model_copy(
        update={
            "output_directory": fill(spec.output_directory),
            "checkpoint": checkpoint.model_copy(
                update={"directory": fill(checkpoint.directory)}
            ),
        }
    )


_Check = Callable[[JobSpec], bool]
_TOGETHER: Final[tuple[tuple[str, _Check, str], ...]] = (
    (
        "ranks_per_node",
        lambda s: s.launch is Launch.ONCE_PER_NODE and s.ranks_per_node > 1,
        "must be 1 with `launch: once_per_node`: the command starts the others",
    ),
    (
        "checkpoint.resume_from",
        lambda s: bool(s.checkpoint.resume_from and not s.checkpoint.directory),
        "needs `checkpoint.directory`, where the job then saves",
    ),
    (
        "success.checkpoint",
        lambda s: s.success.checkpoint and not s.checkpoint.directory,
        "needs `checkpoint.directory`: without it no checkpoint is looked for",
    ),
    (
        "success.step",
        lambda s: bool(s.success.step and not s.checkpoint.directory),
        "needs `checkpoint.directory`: a verified checkpoint proves the step",
    ),
    (
        "total_limit",
        lambda s: 0 < s.total_limit_seconds < s.time_limit_seconds,
        "must not be shorter than `time_limit`, the limit of one attempt",
    ),
)
"""What no field alone can tell: the field to blame, when it is wrong, and why."""


def check_together(spec: JobSpec, report: Report) -> None:
    """Report fields that do not go together; one that is wrong already is left out."""
    blamed = {fault.field for fault in report.faults}
    for name, wrong, message in _TOGETHER:
        if name not in blamed and wrong(spec):
            report.wrong(name, f"`{name}` {message}")
