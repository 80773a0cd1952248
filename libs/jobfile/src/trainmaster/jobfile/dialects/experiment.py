"""Decides what the `experiment:` form means."""

from typing import Final

from trainmaster.jobfile import kinds
from trainmaster.jobfile.dialects.dialect import Dialect
from trainmaster.jobfile.dialects.places import STORED, of_each_job
from trainmaster.jobfile.document import Node
from trainmaster.jobfile.limits import INT32_MAX, NODES_MAX, PER_NODE_MAX, RETRIES_MAX
from trainmaster.jobfile.names import NAME
from trainmaster.jobfile.report import Where
from trainmaster.jobfile.scalars import flag
from trainmaster.jobfile.table import Field, Kind, Table

_STEPS: Final = kinds.integer(1, INT32_MAX)
_SPAN: Final = kinds.duration(least=0.001)


def _resumed(node: Node, where: Where) -> bool | None:
    value = flag(node, where)
    if value is False:
        where.wrong(
            "cannot be `false` here: a retry goes on from the newest verified "
            "checkpoint; leave out the `storage_uri` to begin anew"
        )
        return None
    return value


def _last(_: bool) -> str:  # noqa: FBT001 - the value of a field
    return "last"


def _seconds(value: float) -> str:
    return f"{value:g}"


def _alert(wanted: bool) -> str:  # noqa: FBT001 - the value of a field
    return "notify" if wanted else "ignore"


_COMPUTE: Final[Table] = (
    Field(
        name="worker_nodes",
        kind=kinds.integer(1, NODES_MAX),
        means="How many nodes.",
        becomes="nodes",
    ),
    Field(
        name="accelerators_per_worker",
        kind=kinds.integer(0, PER_NODE_MAX),
        means="Accelerators on each node, each with a rank.",
        becomes="accelerators_per_node",
    ),
)
_DISTRIBUTED: Final[Table] = (
    Field(
        name="strategy",
        kind=kinds.TEXT,
        means="Ranks find it as `PARAM_STRATEGY`.",
        becomes="parameters.strategy",
    ),
    Field(
        name="gradient_accumulation_steps",
        kind=_STEPS,
        means="Ranks find it as `PARAM_GRADIENT_ACCUMULATION_STEPS`.",
        becomes="parameters.gradient_accumulation_steps",
        via=str,
    ),
    Field(
        name="communication_timeout_seconds",
        kind=_SPAN,
        means="Ranks find it as `PARAM_COMMUNICATION_TIMEOUT_SECONDS`, for the "
        "framework's process group.",
        becomes="parameters.communication_timeout_seconds",
        via=_seconds,
    ),
)
_CHECKPOINT: Final[Table] = (
    Field(
        name="storage_uri",
        kind=STORED,
        means="Where it saves, in a folder of each job.",
        becomes="checkpoint.directory",
        via=of_each_job,
    ),
    Field(
        name="save_interval_steps",
        kind=_STEPS,
        means="How many steps apart it saves.",
        becomes="checkpoint.interval_steps",
    ),
    Field(
        name="resume_from_last",
        kind=Kind(read=_resumed, words="`true`", schema={"enum": [True]}),
        means="The next attempt goes on from the newest verified checkpoint.",
        becomes="checkpoint.resume",
        via=_last,
    ),
    Field(
        name="keep_last_checkpoints",
        kind=_STEPS,
        means="So many checkpoints stay.",
        becomes="checkpoint.keep.last",
    ),
)
_LOGGING: Final[Table] = (
    Field(
        name="metrics_interval_steps",
        kind=_STEPS,
        means="Between metrics that the training reports.",
        becomes="observe.metrics_interval_steps",
    ),
    Field(
        name="logs_uri",
        kind=STORED,
        means="Where logs and results go, in a folder of each job.",
        becomes="output_directory",
        via=of_each_job,
    ),
)
_RUNTIME: Final[Table] = (
    Field(
        name="request_timeout_seconds",
        kind=_SPAN,
        means="Ranks find it as `PARAM_REQUEST_TIMEOUT_SECONDS`, for what they ask of "
        "other services.",
        becomes="parameters.request_timeout_seconds",
        via=_seconds,
    ),
    Field(
        name="failure_retry_times",
        kind=kinds.integer(0, RETRIES_MAX),
        means="How often a failed attempt is tried again.",
        becomes="retries",
    ),
    Field(
        name="health_check_interval_seconds",
        kind=_SPAN,
        means="Between looks at the ranks' health.",
        becomes="observe.health_interval",
    ),
)
_OBSERVABILITY: Final[Table] = (
    Field(
        name="metrics_export_interval_seconds",
        kind=_SPAN,
        means="Between exports of metrics.",
        becomes="observe.export_interval",
    ),
    Field(
        name="alert_on_loss_nan",
        kind=kinds.FLAG,
        means="Say so when a loss is not a number.",
        becomes="on.nan",
        via=_alert,
    ),
    Field(
        name="alert_on_checkpoint_failure",
        kind=kinds.FLAG,
        means="Say so when a checkpoint fails.",
        becomes="on.checkpoint_failure",
        via=_alert,
    ),
)

EXPERIMENT: Final = Dialect(
    name="experiment",
    means="A distributed training; what runs stands beside it or in a template.",
    table=(
        Field(name="name", kind=NAME, means="The name.", becomes="name"),
        Field(name="compute", means="Where it runs.", kind=kinds.group(*_COMPUTE)),
        Field(
            name="distributed",
            means="How its ranks work together.",
            kind=kinds.group(*_DISTRIBUTED),
        ),
        Field(
            name="checkpoint",
            means="Where and how it saves.",
            kind=kinds.group(*_CHECKPOINT),
        ),
        Field(name="logging", means="What it tells.", kind=kinds.group(*_LOGGING)),
        Field(
            name="runtime",
            means="How it runs.",
            kind=kinds.group(*_RUNTIME),
        ),
        Field(
            name="observability",
            means="Who looks.",
            kind=kinds.group(*_OBSERVABILITY),
        ),
    ),
)
