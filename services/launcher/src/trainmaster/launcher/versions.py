"""Decides whether the members of an attempt have equal versions, or which one is odd.

Pure. The majority is right; between equally many the one with the lower ranks is.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from trainmaster.core.facts import CheckFailure

CHECK: Final = "versions"
_NONE: Final = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """What one node says it has."""

    node: str
    versions: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Odd:
    """The node that differs, in which field, from whom."""

    node: str
    failure: CheckFailure

    @property
    def sentence(self) -> str:
        """Name the node and the field for people."""
        found = self.failure
        return (
            f"{self.node} has {found.field} {found.seen}, the others have "
            f"{found.expected}: make the nodes equal, nothing was started"
        )


def odd_one(members: Sequence[Reported]) -> Odd | None:
    """Find the first node, in the order of fields and ranks, that differs."""
    fields = sorted({field for member in members for field in member.versions})
    for field in fields:
        odd = _odd_in(field, members)
        if odd is not None:
            return odd
    return None


def _odd_in(field: str, members: Sequence[Reported]) -> Odd | None:
    # A Counter keeps the order in which values came, so lower ranks win a tie.
    count = Counter(member.versions.get(field, _NONE) for member in members)
    if len(count) == 1:
        return None
    usual, _ = max(count.items(), key=lambda item: item[1])
    for member in members:
        seen = member.versions.get(field, _NONE)
        if seen != usual:
            return Odd(
                node=member.node,
                failure=CheckFailure(
                    check=CHECK, field=field, expected=usual, seen=seen
                ),
            )
    return None
