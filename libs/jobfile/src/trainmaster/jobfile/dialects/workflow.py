"""Decides what the `workflow:` form means."""

from typing import Final

from trainmaster.jobfile import kinds
from trainmaster.jobfile.dialects.dialect import Dialect
from trainmaster.jobfile.dialects.places import STORED, of_each_job
from trainmaster.jobfile.limits import INT32_MAX, NODES_MAX, PER_NODE_MAX, RETRIES_MAX
from trainmaster.jobfile.names import NAME
from trainmaster.jobfile.table import Field

_GIGABYTES_MAX: Final = 1_000_000


def _gigabytes(number: int) -> int:
    return number * 1000**3


def _from(path: str) -> dict[str, str]:
    return {"from": path}


WORKFLOW: Final = Dialect(
    name="workflow",
    means="A training with its numbers; what runs stands beside it or in a template.",
    table=(
        Field(name="name", kind=NAME, means="The name.", becomes="name"),
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
                    name="accelerators_per_node",
                    kind=kinds.integer(0, PER_NODE_MAX),
                    means="Accelerators on each node.",
                    becomes="accelerators_per_node",
                ),
                Field(
                    name="cpu_cores_per_node",
                    kind=kinds.integer(1, PER_NODE_MAX),
                    means="Cores on each node.",
                    becomes="cpus_per_node",
                ),
                Field(
                    name="memory_gb_per_node",
                    kind=kinds.integer(1, _GIGABYTES_MAX),
                    means="Main memory on each node, in 10⁹ bytes.",
                    becomes="memory_per_node",
                    via=_gigabytes,
                ),
            ),
        ),
        Field(
            name="training",
            means="How it trains.",
            kind=kinds.group(
                Field(
                    name="processes_per_node",
                    kind=kinds.integer(1, PER_NODE_MAX),
                    means="Training processes on each node.",
                    becomes="ranks_per_node",
                ),
                Field(
                    name="batch_size",
                    kind=kinds.integer(1, INT32_MAX),
                    means="Ranks find it as `PARAM_BATCH_SIZE`.",
                    becomes="parameters.batch_size",
                    via=str,
                ),
                Field(
                    name="checkpoint_interval_steps",
                    kind=kinds.integer(1, INT32_MAX),
                    means="How many steps apart it saves.",
                    becomes="checkpoint.interval_steps",
                ),
                Field(
                    name="max_retry",
                    kind=kinds.integer(0, RETRIES_MAX),
                    means="How often a failed attempt is tried again.",
                    becomes="retries",
                ),
            ),
        ),
        Field(
            name="storage",
            means="What it reads and writes.",
            kind=kinds.group(
                Field(
                    name="data_root",
                    kind=STORED,
                    means="What it reads, with its version; `TM_DATA_DIR`.",
                    becomes="data.root",
                    via=_from,
                ),
                Field(
                    name="output_root",
                    kind=STORED,
                    means="Where it writes, in a folder of each job; a last part "
                    "`task-id` stands for the job's id.",
                    becomes="output_directory",
                    via=of_each_job,
                ),
            ),
        ),
        Field(
            name="observability",
            means="How closely it is watched.",
            kind=kinds.group(
                Field(
                    name="log_level",
                    kind=kinds.choice(("debug", "info", "warning", "error")),
                    means="Ranks find it as `PARAM_LOG_LEVEL`.",
                    becomes="observe.log_level",
                ),
                Field(
                    name="metrics_interval_seconds",
                    kind=kinds.duration(least=0.001),
                    means="Between samples of metrics.",
                    becomes="observe.metrics_interval",
                ),
            ),
        ),
    ),
)
