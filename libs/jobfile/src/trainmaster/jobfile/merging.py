"""Decides what two sets of fields mean together: a template, an overlay, a dialect.

Groups are merged, everything else is replaced. Pure.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from trainmaster.jobfile.table import as_group

Values = Mapping[str, Any]
_INSTEAD: Final = {"command": "script", "script": "command"}
"""Who says one does not want the other any more."""


def merged(base: Values, over: Values) -> dict[str, Any]:
    """Put fields over others."""
    gone = {_INSTEAD[name] for name in over if name in _INSTEAD}
    kept = {name: value for name, value in base.items() if name not in gone}
    return kept | {name: _one(kept.get(name), value) for name, value in over.items()}


def _one(base: Any, over: Any) -> Any:
    here, there = as_group(base), as_group(over)
    return over if here is None or there is None else merged(here, there)


def common(one: Values, other: Values, prefix: str = "") -> Iterator[str]:
    """Name the fields that both say."""
    for name in one:
        if name not in other:
            continue
        here, there = as_group(one[name]), as_group(other[name])
        if here is None or there is None:
            yield f"{prefix}{name}"
        else:
            yield from common(here, there, f"{prefix}{name}.")
