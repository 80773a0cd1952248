"""Owns the fields of how a job behaves: when it succeeds, tries again, stops."""

from typing import Final

from trainmaster.jobfile import kinds
from trainmaster.jobfile.groups import Names
from trainmaster.jobfile.limits import INT32_MAX, RETRIES_MAX
from trainmaster.jobfile.names import PLAIN_NAMES
from trainmaster.jobfile.table import Acts, Field, Table

_STEPS: Final = kinds.integer(1, INT32_MAX)
_SPAN: Final = kinds.duration(least=0.001)


_GOAL: Final = kinds.group(
    Field(name="name", kind=kinds.TEXT, means="The metric.", default="required"),
    Field(name="at_least", kind=kinds.NUMBER, means="The least it may be."),
    Field(name="at_most", kind=kinds.NUMBER, means="The most it may be."),
)
_UNJUDGED: Final = "declare `step` or `checkpoint`, which can be judged"
_SUCCESS: Final = kinds.group(
    Field(
        name="step",
        kind=_STEPS,
        means="A verified checkpoint of this step or a later one must be there.",
    ),
    Field(
        name="checkpoint",
        kind=kinds.FLAG,
        means="A verified checkpoint of the last step must be there.",
    ),
    Field(
        name="outputs",
        kind=kinds.list_of(kinds.PATH),
        means="These must be there.",
        acts=Acts.REFUSED,
        meanwhile=_UNJUDGED,
    ),
    Field(
        name="metric",
        kind=_GOAL,
        means="A metric's last value must keep these bounds.",
        acts=Acts.REFUSED,
        meanwhile=_UNJUDGED,
    ),
)
_TIMES: Final = kinds.integer(0, RETRIES_MAX)
_BUDGETS: Final = kinds.group(
    Field(name="user", kind=_TIMES, means="After errors of the program."),
    Field(
        name="infrastructure",
        kind=_TIMES,
        means="After signals and losses that are not the program's.",
    ),
    Field(name="node", kind=_TIMES, means="After a node failed."),
    Field(name="out_of_memory", kind=_TIMES, means="After memory ran out."),
    Field(
        name="hold",
        kind=kinds.duration(),
        means="How long the surviving nodes are kept for the next attempt.",
        default="10m",
    ),
)
_FINDINGS: Final = Names(
    pattern=PLAIN_NAMES.pattern, rule="the name of a finding, as `nan` or `hang`"
)
CONDUCT: Final[Table] = (
    Field(
        name="success",
        kind=_SUCCESS,
        means="The evidence that makes it a success.",
        default="all ranks exit 0",
    ),
    Field(
        name="on",
        kind=kinds.pairs(
            _FINDINGS,
            kinds.choice(("notify", "ignore", "stop", "restart", "rollback")),
        ),
        means="What a finding leads to, as `{hang: restart, nan: rollback}`.",
        default="`notify`",
        acts=Acts.ANNOUNCED,
        meanwhile="every finding is shown with the job; none stops or restarts it",
    ),
    Field(
        name="retries",
        kind=kinds.one_of(scalar=_TIMES, fields=_BUDGETS),
        means="How often a failed attempt is tried again; verified progress gives "
        "them back. A group gives each kind of failure its own budget; for now the "
        "greatest of them holds for all.",
        default="3",
    ),
    Field(
        name="time_limit",
        kind=_SPAN,
        means="The longest one attempt may run; it is then tried again, free of charge "
        "if it progressed.",
        default="none",
    ),
    Field(
        name="total_limit",
        kind=_SPAN,
        means="The longest all attempts together may take.",
        default="none",
    ),
    Field(
        name="stop_grace",
        kind=kinds.duration(),
        means="Between the request to stop and the kill.",
        default="10s",
    ),
)
