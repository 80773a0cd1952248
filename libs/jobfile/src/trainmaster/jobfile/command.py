"""Decides what is executed: a simple command directly, all else through /bin/sh."""

import re
import shlex
from typing import Final

from trainmaster.jobfile.credentials import has_secret
from trainmaster.jobfile.document import Items, Node
from trainmaster.jobfile.groups import list_of
from trainmaster.jobfile.report import Where
from trainmaster.jobfile.scalars import raw, text
from trainmaster.jobfile.table import Kind

_SHELL: Final = "/bin/sh"
_META: Final = re.compile(r"[|&;<>()$`*?\[\]~#\n]")
_QUOTING: Final = re.compile(r"""["'\\]""")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_BUILT_IN: Final = frozenset(
    {"!", ".", "{", "case", "cd", "eval", "exec", "export"}
) | {"for", "if", "set", "source", "trap", "ulimit", "umask", "until", "while"}
_OPEN: Final = (
    "has what looks like a secret in it, and everybody on the node can read a command: "
    "use a variable and write `secrets: {VARIABLE: secret://PROVIDER/NAME}`"
)

_items = list_of(raw)


def command(node: Node, where: Where) -> tuple[str, ...] | None:
    """Read a command: a list is executed as it is, text is split or given to sh."""
    words = _words(node, where)
    if words is not None and has_secret(" ".join(words)):
        where.wrong(_OPEN)
        return None
    return words


def _words(node: Node, where: Where) -> tuple[str, ...] | None:
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
    simple = _QUOTING.search(stripped) is None
    words = tuple(stripped.split() if simple else shlex.split(stripped))
    if _META.search(stripped) or _ASSIGNMENT.match(words[0]) or words[0] in _BUILT_IN:
        return (_SHELL, "-c", stripped)
    return words


def script(node: Node, where: Where) -> tuple[str, ...] | None:
    """Read a script, for what its first line names, else for sh.

    That sh stops at the first line that fails.
    """
    lines = text(node, where)
    if lines is None:
        return None
    if has_secret(lines):
        where.wrong(_OPEN)
        return None
    first, _, rest = lines.partition("\n")
    if not first.startswith("#!"):
        return (_SHELL, "-e", "-c", lines)
    if not (interpreter := first[2:].split()) or not rest.strip():
        where.wrong("must name an interpreter behind `#!`, and have lines for it")
        return None
    return (*interpreter, "-c", rest)


COMMAND: Final = Kind(
    read=command,
    words="a line, or a list of words",
    schema={
        "anyOf": [
            {"type": "string", "minLength": 1},
            {"type": "array", "minItems": 1, "items": {"type": ["string", "number"]}},
        ]
    },
)
SCRIPT: Final = Kind(
    read=script, words="lines", schema={"type": "string", "minLength": 1}
)
