"""What is observed beside the log: who beats, how far jobs are, what is not finite.

Telemetry states these as facts; the policy reads them. All times are the server's.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from trainmaster.core.ids import JobKey, NodeKey
from trainmaster.core.messages import NodeHeartbeat, Progress

HEARD: Final = "heard"
"""The fact `Heard`: all heartbeats, as of one moment."""
PROGRESS: Final = "progress"
"""The fact: newest progress by job, a mapping of JobKey to Progress."""
NOT_FINITE: Final = "not_finite:"
"""Prefix of facts `NotFinite`, one per job and attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """A node's newest heartbeat and when it came."""

    at: datetime
    said: NodeHeartbeat


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """All heartbeats as of `at`; silence is judged as of then, never later.

    `since` is when listening began anew, `resumed` when a pool that had been silent
    altogether was heard again: silence counts from there at the earliest.
    """

    at: datetime
    since: datetime
    beats: Mapping[NodeKey, Beat] = field(default_factory=dict[NodeKey, Beat])
    resumed: Mapping[str, datetime] = field(default_factory=dict[str, datetime])


@dataclass(frozen=True, slots=True, kw_only=True)
class NotFinite:
    """A loss that is no number any more."""

    key: JobKey
    attempt: int
    rank: int
    step: int
    text: str

    @property
    def fact(self) -> str:
        """Name the fact that states this."""
        return f"{NOT_FINITE}{self.key.job}:{self.attempt}"


def progress_of(facts: Mapping[str, Any], key: JobKey, attempt: int) -> Progress:
    """Look up how far an attempt is; step 0 without a loss when nobody has said."""
    known: Mapping[JobKey, Progress] = facts.get(PROGRESS, {})
    found = known.get(key)
    if found is not None and found.attempt == attempt:
        return found
    return Progress(attempt=attempt)
