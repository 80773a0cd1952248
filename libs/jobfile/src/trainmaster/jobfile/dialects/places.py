"""Decides where the paths of a dialect are: in stores, a folder for every job."""

from typing import Final

from trainmaster.jobfile import scalars
from trainmaster.jobfile.document import Node
from trainmaster.jobfile.report import Where
from trainmaster.jobfile.table import Kind

_JOB: Final = "{job}"
_STANDS_FOR_THE_JOB: Final = frozenset({"task-id", "task_id", "job-id", "job_id"})
"""What people write where the id of the job belongs."""


def of_each_job(path: str) -> str:
    """Give every job a folder of its own, so that none overwrites another's."""
    parts = path.rstrip("/").split("/")
    if any(_JOB in part for part in parts):
        return path
    if parts[-1] in _STANDS_FOR_THE_JOB:
        parts.pop()
    return "/".join((*parts, _JOB))


def _stored(node: Node, where: Where) -> str | None:
    path = scalars.path(node, where)
    if path is None or path.startswith(("/", "storage://", ".")):
        return path
    return f"storage://{path}"


STORED: Final = Kind(
    read=_stored,
    words="`STORE/path`, `storage://STORE/path` or an absolute path",
    schema={"type": "string"},
)
"""A path whose first part is the name of a store."""
