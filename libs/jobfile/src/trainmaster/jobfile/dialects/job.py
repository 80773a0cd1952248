"""Decides what the `job:` form means."""

from typing import Any, Final

from trainmaster.jobfile import kinds
from trainmaster.jobfile.command import COMMAND
from trainmaster.jobfile.dialects.dialect import Dialect
from trainmaster.jobfile.dialects.places import of_each_job
from trainmaster.jobfile.document import Node
from trainmaster.jobfile.limits import NODES_MAX, PER_NODE_MAX, RETRIES_MAX
from trainmaster.jobfile.names import NAME
from trainmaster.jobfile.report import Where
from trainmaster.jobfile.scalars import choice
from trainmaster.jobfile.table import Field, Kind


def _from(path: str) -> dict[str, str]:
    return {"from": path}


def _again(attempts: int) -> int:
    return attempts - 1


def _on_failure(node: Node, where: Where) -> str | None:
    word = choice(("restart_from_checkpoint", "restart"))(node, where)
    if word == "restart":
        where.wrong(
            "cannot be `restart` here: a retry goes on from the newest verified "
            "checkpoint; write `restart_from_checkpoint`, or leave out the "
            "`checkpoint_dir` to begin anew"
        )
        return None
    return word


def _last(_: Any) -> str:
    return "last"


JOB: Final = Dialect(
    name="job",
    means="One job, its resources on one node unless `nodes` says more.",
    table=(
        Field(name="name", kind=NAME, means="The name.", becomes="name"),
        Field(
            name="image", kind=kinds.TEXT, means="The image.", becomes="container.image"
        ),
        Field(
            name="resources",
            means="What each node gives.",
            kind=kinds.group(
                Field(
                    name="nodes",
                    kind=kinds.integer(1, NODES_MAX),
                    means="How many nodes.",
                    becomes="nodes",
                ),
                Field(
                    name="accelerators",
                    kind=kinds.integer(0, PER_NODE_MAX),
                    means="Accelerators on each node.",
                    becomes="accelerators_per_node",
                ),
                Field(
                    name="cpu",
                    kind=kinds.integer(1, PER_NODE_MAX),
                    means="Cores on each node.",
                    becomes="cpus_per_node",
                ),
                Field(
                    name="memory",
                    kind=kinds.SIZE,
                    means="Main memory on each node.",
                    becomes="memory_per_node",
                ),
            ),
        ),
        Field(name="command", kind=COMMAND, means="What runs.", becomes="command"),
        Field(
            name="data",
            means="What it reads and where it saves.",
            kind=kinds.group(
                Field(
                    name="dataset",
                    kind=kinds.PLAIN_PATH,
                    means="What it reads; ranks find it as `TM_DATA_DIR`.",
                    becomes="data.dataset",
                    via=_from,
                ),
                Field(
                    name="checkpoint_dir",
                    kind=kinds.PATH,
                    means="Where it saves, in a folder of each job.",
                    becomes="checkpoint.directory",
                    via=of_each_job,
                ),
            ),
        ),
        Field(
            name="retry",
            means="What happens after a failure.",
            kind=kinds.group(
                Field(
                    name="max_attempts",
                    kind=kinds.integer(1, RETRIES_MAX),
                    means="How many attempts, the first one included.",
                    becomes="retries",
                    via=_again,
                ),
                Field(
                    name="on_failure",
                    kind=Kind(
                        read=_on_failure,
                        words="`restart_from_checkpoint`",
                        schema={"enum": ["restart_from_checkpoint"]},
                    ),
                    means="Go on from the newest verified checkpoint.",
                    becomes="checkpoint.resume",
                    via=_last,
                ),
            ),
        ),
    ),
)
