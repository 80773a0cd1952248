"""Owns the words that more than one table of fields is made of."""

import re
import unicodedata
from typing import Final

from trainmaster.core.ids import TOKEN
from trainmaster.jobfile import kinds, scalars
from trainmaster.jobfile.document import Node
from trainmaster.jobfile.groups import Names
from trainmaster.jobfile.limits import NAME_CHARACTERS_MAX
from trainmaster.jobfile.report import Where
from trainmaster.jobfile.table import Kind

TOKEN_KIND: Final = kinds.word(TOKEN, "1 to 64 letters, digits, `_` or `-`")
VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_JOINERS: Final = str.maketrans("", "", "\u200c\u200d")
_NAME_RULE: Final = (
    f"1 to {NAME_CHARACTERS_MAX} printable characters of any script, without `/` and "
    "blanks around"
)
PLAIN_NAMES: Final = Names(
    pattern=re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}"),
    rule="a letter and up to 62 letters, digits or `_`",
)


def _name(node: Node, where: Where) -> str | None:
    """Read a name of any script, in its one composed form."""
    value = scalars.text(node, where)
    if value is None:
        return None
    composed = unicodedata.normalize("NFC", value)
    visible = composed.translate(_JOINERS)
    right = (
        visible.isprintable()
        and visible == visible.strip()
        and len(composed) <= NAME_CHARACTERS_MAX
        and "/" not in composed
    )
    if not (right and visible):
        where.wrong(f"must be {_NAME_RULE}")
        return None
    return composed


NAME: Final = Kind(
    read=_name,
    words=_NAME_RULE,
    schema={"type": "string", "minLength": 1, "maxLength": NAME_CHARACTERS_MAX},
)
