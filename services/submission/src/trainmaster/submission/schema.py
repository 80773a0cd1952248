"""Decides which fields a job file has, and what each must be."""

import re
from collections.abc import Mapping
from typing import Any, Final

from trainmaster.core.ids import TOKEN
from trainmaster.core.spec import PRIORITY_CLASSES, Launch
from trainmaster.submission import fields
from trainmaster.submission.command import command
from trainmaster.submission.document import Node, Scalar
from trainmaster.submission.groups import group, pairs_of
from trainmaster.submission.report import Reader, Where
from trainmaster.submission.settings import (
    NODES_MAX,
    PER_NODE_MAX,
    RESERVED_NAMES,
    RESERVED_PREFIXES,
    RETRIES_MAX,
)

_INT32: Final = 2**31 - 1
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_NAME_RULE: Final = "1 to 100 letters, digits, `.`, `_` or `-`"
_RULE_OF_TOKENS: Final = "1 to 64 letters, digits, `_` or `-`"
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LABEL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,62}")
_LABEL_RULE: Final = "1 to 63 letters, digits, `.`, `_`, `/` or `-`"


def _priority(node: Node, where: Where) -> int | None:
    if isinstance(node, Scalar) and node.text in PRIORITY_CLASSES:
        return PRIORITY_CLASSES[node.text]
    if isinstance(node, Scalar) and re.match(r"[-0-9]", node.text):
        return fields.integer(-_INT32, _INT32)(node, where)
    fields.choice(PRIORITY_CLASSES)(node, where)
    return None


def _refuse_reserved(name: str) -> str:
    if name in RESERVED_NAMES or name.startswith(RESERVED_PREFIXES):
        return "is reserved: the launcher sets it for every rank; remove it"
    return ""


def _pool_or_team() -> Reader[str]:
    return fields.word(TOKEN, _RULE_OF_TOKENS)


_CHECKPOINT: Final[Mapping[str, Reader[Any]]] = {
    "directory": fields.path,
    "resume_from": fields.plain_path,
}
_SUCCESS: Final[Mapping[str, Reader[Any]]] = {
    "step": fields.integer(1, _INT32),
    "checkpoint": fields.flag,
}
FIELDS: Final[Mapping[str, Reader[Any]]] = {
    "name": fields.word(_NAME, _NAME_RULE),
    "command": command,
    "work_directory": fields.plain_path,
    "env": pairs_of(_VARIABLE, "letters, digits and `_`", _refuse_reserved),
    "pool": _pool_or_team(),
    "nodes": fields.integer(1, NODES_MAX),
    "accelerators_per_node": fields.integer(0, PER_NODE_MAX),
    "ranks_per_node": fields.integer(1, PER_NODE_MAX),
    "cpus_per_node": fields.integer(1, PER_NODE_MAX),
    "memory_per_node": fields.memory,
    "launch": fields.choice([each.value for each in Launch if each]),
    "checkpoint": group(_CHECKPOINT),
    "output_directory": fields.path,
    "data_directory": fields.plain_path,
    "success": group(_SUCCESS),
    "retries": fields.integer(0, RETRIES_MAX),
    "time_limit": fields.duration(least=0.001),
    "total_limit": fields.duration(least=0.001),
    "stop_grace": fields.duration(),
    "priority": _priority,
    "hold": fields.flag,
    "labels": pairs_of(_LABEL, _LABEL_RULE, lambda _: ""),
    "project": fields.word(_NAME, _NAME_RULE),
    "team": _pool_or_team(),
}
"""Every field of a job file, and what it must be."""
read_fields: Final = group(FIELDS)
