"""Owns the fields of the queue and the watchers: priority, arrays, waiting, notices."""

import re
from typing import Final

from trainmaster.core.spec import PRIORITY_CLASSES
from trainmaster.jobfile import kinds, scalars
from trainmaster.jobfile.command import COMMAND
from trainmaster.jobfile.credentials import looks_secret
from trainmaster.jobfile.document import Node, Scalar
from trainmaster.jobfile.groups import open_secret
from trainmaster.jobfile.limits import ARRAY_MAX, INT32_MAX, NODES_MAX
from trainmaster.jobfile.report import Where, shown
from trainmaster.jobfile.table import Acts, Field, Kind, Table

_STEPS: Final = kinds.integer(1, INT32_MAX)
_SPAN: Final = kinds.duration(least=0.001)


def _priority(node: Node, where: Where) -> str | int | None:
    if isinstance(node, Scalar) and re.match(r"[-0-9]", node.text):
        return scalars.integer(-INT32_MAX, INT32_MAX)(node, where)
    return scalars.choice(PRIORITY_CLASSES)(node, where)


_PRIORITY: Final = Kind(
    read=_priority,
    words=", ".join(f"`{each}`" for each in PRIORITY_CLASSES) + ", or a whole number",
    schema={"anyOf": [{"enum": list(PRIORITY_CLASSES)}, {"type": "integer"}]},
)
_INDEXES: Final = re.compile(
    r"(?P<first>[0-9]{1,9})-(?P<last>[0-9]{1,9})(:(?P<step>[0-9]{1,9}))?(%(?P<most>[0-9]{1,9}))?"
)


def _array(node: Node, where: Where) -> dict[str, int] | None:
    word = scalars.raw(node, where)
    if word is None:
        return None
    found = _INDEXES.fullmatch(word)
    if found is None:
        rule = "must be `FIRST-LAST`, `FIRST-LAST:STEP` or `FIRST-LAST%AT_ONCE`"
        where.wrong(f"{rule}, as `0-99%8`, not {shown(word)}")
        return None
    first, last = int(found["first"]), int(found["last"])
    step = int(found["step"] or 1)
    if not (first <= last and step and (last - first) // step < ARRAY_MAX):
        where.wrong(f"must be 1 to {ARRAY_MAX:,} indexes, not {shown(word)}")
        return None
    most = int(found["most"] or 0)
    return {"first": first, "last": last, "step": step, "parallel_max": most}


def _one_job(node: Node, where: Where) -> dict[str, tuple[str, ...]] | None:
    job = scalars.text(node, where)
    return None if job is None else {"ok": (job,)}


def _some_jobs(node: Node, where: Where) -> dict[str, tuple[str, ...]] | None:
    jobs = kinds.list_of(kinds.TEXT).read(node, where)
    return None if jobs is None else {"ok": jobs}


_JOBS: Final = kinds.list_of(kinds.TEXT)
_AFTER: Final = kinds.one_of(
    scalar=Kind(read=_one_job, words="a job", schema={"type": "string"}),
    items=Kind(read=_some_jobs, words="jobs", schema=kinds.schema_of(_JOBS)),
    fields=kinds.group(
        Field(name="ok", kind=_JOBS, means="These must succeed."),
        Field(name="any", kind=_JOBS, means="These must end, however."),
        Field(name="failed", kind=_JOBS, means="These must fail."),
    ),
)


def _address(node: Node, where: Where) -> str | None:
    value = scalars.text(node, where)
    if value is not None and looks_secret("", value):
        where.wrong(open_secret("NOTIFY"))
        return None
    return value


_ADDRESS: Final = Kind(
    read=_address,
    words="an address, or `secret://PROVIDER/NAME` of one",
    schema={"type": "string"},
)
_NOTIFY: Final = kinds.list_of(
    kinds.group(
        Field(name="to", kind=_ADDRESS, means="Who is told.", default="required"),
        Field(
            name="on",
            kind=kinds.list_of(kinds.TEXT),
            means="Which events are told.",
            default="the job's end",
        ),
    )
)
_STAGES: Final = kinds.list_of(
    kinds.group(
        Field(
            name="name",
            kind=kinds.TEXT,
            means="What the stage is called.",
            default="required",
        ),
        Field(name="command", kind=COMMAND, means="Instead of the job's own."),
        Field(
            name="nodes",
            kind=kinds.integer(1, NODES_MAX),
            means="On so many nodes.",
            default="all",
        ),
        Field(
            name="steps",
            kind=_STEPS,
            means="Passed once so many steps are done.",
            default="passed when it ends",
        ),
        Field(name="time_limit", kind=_SPAN, means="The longest it may take."),
    )
)
_INTERVALS: Final = "the installation's own interval holds"
_OBSERVE: Final = kinds.group(
    Field(
        name="metrics_interval",
        kind=_SPAN,
        means="Between samples of metrics.",
        acts=Acts.ANNOUNCED,
        meanwhile=_INTERVALS,
    ),
    Field(
        name="metrics_interval_steps",
        kind=_STEPS,
        means="Between metrics that the training reports; ranks find it as "
        "`PARAM_METRICS_INTERVAL_STEPS`.",
    ),
    Field(
        name="export_interval",
        kind=_SPAN,
        means="Between exports of metrics.",
        acts=Acts.ANNOUNCED,
        meanwhile=_INTERVALS,
    ),
    Field(
        name="health_interval",
        kind=_SPAN,
        means="Between looks at the ranks' health.",
        acts=Acts.ANNOUNCED,
        meanwhile=_INTERVALS,
    ),
    Field(
        name="log_level",
        kind=kinds.choice(("debug", "info", "warning", "error")),
        means="How much the training logs; ranks find it as `PARAM_LOG_LEVEL`.",
    ),
)

QUEUE: Final[Table] = (
    Field(
        name="priority",
        kind=_PRIORITY,
        means="Higher goes first.",
        default="`normal`, which is 0",
    ),
    Field(
        name="hold", kind=kinds.FLAG, means="Wait for `tm release`.", default="false"
    ),
    Field(
        name="array",
        kind=Kind(
            read=_array,
            words="`FIRST-LAST`, with `:STEP` and `%AT_ONCE`",
            schema={"type": "string", "pattern": "^[0-9]+-[0-9]+(:[0-9]+)?(%[0-9]+)?$"},
        ),
        means="One job many times, as `0-99%8`.",
        acts=Acts.REFUSED,
        meanwhile="submit the file once for each index, with `--name`",
    ),
    Field(
        name="after",
        kind=_AFTER,
        means="Jobs it waits for; a list or a word is short for `ok`.",
        acts=Acts.REFUSED,
        meanwhile="use `hold: true` and `tm release` it when they are over",
    ),
    Field(
        name="rollout",
        kind=_STAGES,
        means="Smaller steps before the whole job, each of which must pass.",
        acts=Acts.REFUSED,
        meanwhile="submit the smaller job first",
    ),
    Field(
        name="notify",
        kind=_NOTIFY,
        means="Who is told.",
        acts=Acts.ANNOUNCED,
        meanwhile="nobody is told; `tm events --follow` shows what happens",
    ),
    Field(
        name="observe",
        kind=_OBSERVE,
        means="How closely it is watched.",
    ),
)
