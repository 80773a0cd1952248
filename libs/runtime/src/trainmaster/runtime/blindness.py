"""When a service could not see: it extends every deadline it judges by that time."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from trainmaster.core.moment import Interval

_KEPT: Final = timedelta(days=2)


@dataclass(slots=True)
class Blindness:
    """The times this service could not see, in server time."""

    intervals: list[Interval] = field(default_factory=list[Interval])

    def cover(self, start: datetime, end: datetime) -> None:
        """Add a stretch and forget old ones."""
        kept = [i for i in self.intervals if i.end > end - _KEPT]
        self.intervals = [*kept, Interval(start=start, end=end)]
