"""Owns the kinds of values a field can have: reader, words and JSON Schema of each."""

import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from trainmaster.jobfile import groups, scalars
from trainmaster.jobfile.document import Items, Node, Pairs, Scalar
from trainmaster.jobfile.groups import Names
from trainmaster.jobfile.limits import MEMORY_BYTES_MAX
from trainmaster.jobfile.report import Reader, Where
from trainmaster.jobfile.table import REQUIRED, Field, Kind, Table

_TEXT: Final = {"type": "string", "minLength": 1}
_WORD: Final = {"type": ["string", "number", "boolean"]}

FLAG: Final = Kind(
    read=scalars.flag, words="`true` or `false`", schema={"type": "boolean"}
)
TEXT: Final = Kind(read=scalars.text, words="text", schema=_TEXT)
RAW: Final = Kind(read=scalars.raw, words="a word or number", schema=_WORD)
NUMBER: Final = Kind(read=scalars.number, words="a number", schema={"type": "number"})
PATH: Final = Kind(
    read=scalars.path,
    words="a path or `storage://STORE/path`; `{job}` is filled in",
    schema=_TEXT,
)
PLAIN_PATH: Final = Kind(
    read=scalars.plain_path, words="a path or `storage://STORE/path`", schema=_TEXT
)
SECRET: Final = Kind(
    read=scalars.secret,
    words="`secret://PROVIDER/NAME`",
    schema={"type": "string", "pattern": "^secret://[^/]+/.+$"},
)
SIZE: Final = Kind(
    read=scalars.memory,
    words="a size: `512Gi`, `64G`, bytes",
    schema={
        "anyOf": [
            {"type": "string", "pattern": r"^[0-9.]+(Ki|Mi|Gi|Ti|k|M|G|T)?$"},
            {"type": "integer", "maximum": MEMORY_BYTES_MAX},
        ]
    },
)


def duration(*, least: float = 0.0) -> Kind:
    """Seconds, or a number with d, h, m, s."""
    text = {"type": "string", "pattern": "^[0-9.dhms]+$"}
    number = {"type": "number", "minimum": least}
    return Kind(
        read=scalars.duration(least=least),
        words="a duration: `1800`, `30m`, `1h30m`",
        schema={"anyOf": [text, number]},
    )


def integer(least: int, most: int) -> Kind:
    """Take a whole number within bounds."""
    upper = f" to {most:,}" if most < 2**31 - 1 else " or more"
    return Kind(
        read=scalars.integer(least, most),
        words=f"a whole number, {least:,}{upper}",
        schema={"type": "integer", "minimum": least, "maximum": most},
    )


def choice(right: Collection[str]) -> Kind:
    """Take one of a few words."""
    return Kind(
        read=scalars.choice(right),
        words=", ".join(f"`{each}`" for each in right),
        schema={"enum": list(right)},
    )


def word(pattern: re.Pattern[str], rule: str) -> Kind:
    """Take text of one form; `rule` says which."""
    return Kind(
        read=scalars.word(pattern, rule),
        words=rule,
        schema={"type": "string", "pattern": f"^{pattern.pattern}$"},
    )


def list_of(item: Kind) -> Kind:
    """Take a list of one kind."""
    return Kind(
        read=groups.list_of(item.read),
        words=f"a list of: {item.words}",
        schema={"type": "array", "items": schema_of(item)},
        fields=item.fields,
        each=bool(item.fields),
    )


def pairs(names: Names, value: Kind = RAW) -> Kind:
    """Take free names with values of one kind."""
    return Kind(
        read=groups.pairs_of(names, value.read),
        words=f"`name: value`; values: {value.words}",
        schema={"type": "object", "additionalProperties": schema_of(value)},
        fields=value.fields,
        each=bool(value.fields),
    )


def group(*fields: Field) -> Kind:
    """Take known fields."""
    return Kind(
        read=groups.group(
            {each.name: each.kind.read for each in fields},
            required=[each.name for each in fields if each.default == REQUIRED],
        ),
        words="a group",
        schema={},  # made of the fields
        fields=fields,
    )


def one_of(
    *, scalar: Kind | None = None, items: Kind | None = None, fields: Kind | None = None
) -> Kind:
    """Take what fits the form in which it is written."""
    by_form: dict[type[Node], Kind] = {
        form: kind
        for form, kind in ((Scalar, scalar), (Items, items), (Pairs, fields))
        if kind is not None
    }
    kinds = list(by_form.values())
    deep = next((kind for kind in kinds if kind.fields), None)
    return Kind(
        read=_by_form({form: kind.read for form, kind in by_form.items()}),
        words=", or ".join(kind.words for kind in kinds),
        schema={"anyOf": [schema_of(kind) for kind in kinds]},
        fields=deep.fields if deep else (),
        each=deep.each if deep else False,
    )


def _by_form(readers: Mapping[type[Node], Reader[Any]]) -> Reader[Any]:
    """Choose the reader; for a form that none wants, the first one complains."""
    first = next(iter(readers.values()))

    def read(node: Node, where: Where) -> Any:
        return readers.get(type(node), first)(node, where)

    return read


def schema_of(kind: Kind) -> dict[str, Any]:
    """Make the JSON Schema of a value."""
    if kind.schema:
        return dict(kind.schema)
    required = [each.name for each in kind.fields if each.default == REQUIRED]
    needed = {"required": required} if required else {}
    return {**schema_of_fields(kind.fields), **needed}


def schema_of_fields(fields: Table) -> dict[str, Any]:
    """Make the JSON Schema of a group of known fields."""
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {each.name: _described(each) for each in fields},
    }


def _described(field: Field) -> dict[str, Any]:
    default = f" Default: {field.default}." if field.default else ""
    told = f" ({field.acts}: {field.meanwhile})" if field.meanwhile else ""
    return {"description": f"{field.means}{default}{told}", **schema_of(field.kind)}
