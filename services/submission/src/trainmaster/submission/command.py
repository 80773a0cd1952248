"""Decides what is executed: a simple command directly, all else through /bin/sh."""

import re
import shlex
from typing import Final

from trainmaster.submission.document import Items, Node
from trainmaster.submission.fields import raw, text
from trainmaster.submission.groups import list_of
from trainmaster.submission.report import Where

_SHELL: Final = "/bin/sh"
_META: Final = re.compile(r"[|&;<>()$`*?\[\]~#\n]")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_BUILT_IN: Final = frozenset(
    {"!", ".", "{", "case", "cd", "eval", "exec", "export"}
) | {"for", "if", "set", "source", "trap", "ulimit", "umask", "until", "while"}

_items = list_of(raw)


def command(node: Node, where: Where) -> tuple[str, ...] | None:
    """Read a command: a list is executed as it is, text is split or given to sh."""
    if isinstance(node, Items):
        words = _items(node, where)
        if words is not None and not (words and words[0].strip()):
            where.wrong("must begin with a program")
            return None
        return words
    line = text(node, where)
    if line is None:
        return None
    try:
        return argv(line)
    except ValueError as error:
        where.wrong(f"cannot be split: {str(error).lower()}; check the quotes")
        return None


def argv(line: str) -> tuple[str, ...]:
    """Split a simple command; what only a shell understands goes to one."""
    stripped = line.strip()
    words = tuple(shlex.split(stripped, comments=False))
    if _META.search(stripped) or _ASSIGNMENT.match(words[0]) or words[0] in _BUILT_IN:
        return (_SHELL, "-c", stripped)
    return words
