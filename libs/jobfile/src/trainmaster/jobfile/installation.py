"""Owns what an installation lets a job file mean. Pure values."""

from dataclasses import dataclass
from typing import Final

from trainmaster.jobfile.document import NOWHERE, Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What is different from one installation to the next.

    `storage_root` is the directory below which each STORE of `storage://STORE/…` is
    mounted, the same on every node; "" for none. `offers` names fields that are acted
    on here although the table of fields does not say so.
    """

    storage_root: str = ""
    offers: frozenset[str] = frozenset()


ANYWHERE: Final = Site()
"""An installation without anything of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """What somebody should know of a file that is right."""

    field: str
    message: str
    place: Place = NOWHERE
