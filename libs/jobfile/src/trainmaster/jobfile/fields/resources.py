"""Owns the fields of what a job needs: nodes, accelerators, memory, place, backend."""

import json
import re
from typing import Any, Final

from trainmaster.jobfile import kinds, scalars
from trainmaster.jobfile.document import Items, Node, Pairs, Scalar
from trainmaster.jobfile.groups import Names, unique
from trainmaster.jobfile.limits import NODES_MAX, PER_NODE_MAX
from trainmaster.jobfile.names import TOKEN_KIND
from trainmaster.jobfile.report import Where
from trainmaster.jobfile.table import Acts, Field, Kind, Table

_WHOLE: Final = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_PASSED: Final = "pools of this installation start processes themselves: only recorded"


def _foreign(node: Node, where: Where) -> Any:
    """Read any tree as JSON values, for a backend that knows what it means."""
    match node:
        case Pairs():
            return {
                pair.key: _foreign(pair.value, where.inner(f".{pair.key}", pair.place))
                for pair in unique(node, where)
            }
        case Items(items=items):
            return [
                _foreign(item, where.inner(f"[{index}]", item.place))
                for index, item in enumerate(items)
            ]
        case Scalar(text=text, plain=True) if text in {"true", "false"}:
            return text == "true"
        case Scalar(text=text, plain=True) if text in {"null", "~", ""}:
            return None
        case Scalar(text=text, plain=True) if _WHOLE.fullmatch(text):
            return int(text)
        case Scalar(text=text):
            return text


def _as_object(node: Node, where: Where) -> str | None:
    if not isinstance(node, Pairs):
        where.wrong("must be a group of fields")
        return None
    return json.dumps(_foreign(node, where), ensure_ascii=False)


_OBJECT: Final = Kind(
    read=_as_object, words="a group, passed on as it is", schema={"type": "object"}
)
_OPTIONS: Final = Names(
    pattern=re.compile(r"[a-z][a-z0-9-]{0,62}"),
    rule="the long name of an option, as `account` or `gpus-per-node`",
)
_BACKEND: Final = kinds.group(
    Field(
        name="slurm",
        kind=kinds.pairs(_OPTIONS),
        means="Options of `sbatch` by their long names: account, partition, qos, …",
    ),
    Field(
        name="kubernetes",
        kind=_OBJECT,
        means="Fields of the pod: namespace, serviceAccountName, tolerations, …",
    ),
)
_RANGE: Final = kinds.group(
    Field(
        name="min",
        kind=kinds.integer(1, NODES_MAX),
        means="The fewest nodes.",
        default="required",
    ),
    Field(
        name="max",
        kind=kinds.integer(1, NODES_MAX),
        means="The most nodes.",
        default="required",
    ),
    Field(
        name="batch",
        kind=kinds.choice(("global", "per_rank")),
        means="Which batch stays as it is when the number of nodes changes.",
        default="`global`",
    ),
)
_PER_NODE: Final = kinds.integer(1, PER_NODE_MAX)


def _one_or_more(node: Node, where: Where) -> tuple[str, ...] | None:
    word = scalars.text(node, where)
    return None if word is None else (word,)


_NODES: Final = kinds.one_of(scalar=kinds.integer(1, NODES_MAX), fields=_RANGE)
_TYPES: Final = kinds.one_of(
    scalar=Kind(read=_one_or_more, words="a type", schema={"type": "string"}),
    items=kinds.list_of(kinds.TEXT),
)

RESOURCES: Final[Table] = (
    Field(
        name="pool",
        kind=TOKEN_KIND,
        means="The nodes it runs on, by the name of their pool.",
        default="`local`",
    ),
    Field(
        name="nodes",
        kind=_NODES,
        means="How many nodes; all of them or none are given. With `min` and `max` "
        "the job says it can use more or fewer; it now gets `min`.",
        default="1",
    ),
    Field(
        name="accelerators_per_node",
        kind=kinds.integer(0, PER_NODE_MAX),
        means="Whole accelerators on each node.",
        default="0",
    ),
    Field(
        name="accelerator_types",
        kind=_TYPES,
        means="Types that will do, the preferred one first.",
        acts=Acts.REFUSED,
        meanwhile="nodes are not told apart by type here; name a `pool` of the type",
    ),
    Field(
        name="ranks_per_node",
        kind=_PER_NODE,
        means="Training processes on each node; each has the same number of whole "
        "accelerators.",
        default="one for each accelerator, else 1; 1 with `once_per_node`",
    ),
    Field(
        name="cpus_per_node",
        kind=_PER_NODE,
        means="Cores on each node.",
        default="1",
    ),
    Field(
        name="memory_per_node",
        kind=kinds.SIZE,
        means="Main memory on each node.",
        default="no demand",
    ),
    Field(
        name="shm_per_node",
        kind=kinds.SIZE,
        means="Shared memory on each node, for data loaders.",
        acts=Acts.ANNOUNCED,
        meanwhile="the node's own limit holds",
    ),
    Field(
        name="disk_per_node",
        kind=kinds.SIZE,
        means="Scratch space on each node.",
        acts=Acts.ANNOUNCED,
        meanwhile="nobody looks whether the node has so much",
    ),
    Field(
        name="topology",
        kind=kinds.choice(("zone", "rack", "nvlink")),
        means="How near each other the nodes should be; a wish.",
        acts=Acts.ANNOUNCED,
        meanwhile="any nodes of the pool are given",
    ),
    Field(
        name="backend",
        kind=_BACKEND,
        means="What is passed through to the pool's backend, in its own words.",
        acts=Acts.ANNOUNCED,
        meanwhile=_PASSED,
    ),
)
