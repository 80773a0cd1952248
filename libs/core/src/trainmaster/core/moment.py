"""What time it is for a decision, and which times the decider could not see.

A deadline is a stored server time plus a duration plus blind time: whoever was down,
frozen or cut off extends every deadline it judges by that long, so that nothing healthy
is ended because nobody looked.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A stretch of time, `start` before `end`."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A server time, with the intervals the decider was blind in."""

    at: datetime
    blind: tuple[Interval, ...] = ()

    def deadline(self, since: datetime, seconds: float) -> datetime:
        """Add a duration to a stored time, and all blind time met on the way."""
        due = since + timedelta(seconds=seconds)
        for gap in self.blind:
            if gap.end > since and gap.start < due:
                due += gap.end - max(gap.start, since)
        return due

    def overdue(self, since: datetime, seconds: float) -> bool:
        """Tell whether the deadline is reached."""
        return self.deadline(since, seconds) <= self.at
