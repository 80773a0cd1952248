"""Decides how it is told that a part of a service failed and is tried again.

A short outage is normal and said quietly; one that lasts is said aloud, once, and so
is its end. Only what nobody expected is told with its traceback.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import asyncpg
import nats.errors
import structlog

from trainmaster.core.errors import LeadershipLostError, LogLostError, TransientError

LASTS_SECONDS: Final = 5.0
"""So long an outage is nobody's business."""
_APART_SECONDS: Final = 15.0
"""Two failures further apart than this are two outages."""
_AWAY: Final = (
    ConnectionError,
    TimeoutError,
    asyncpg.InsufficientResourcesError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.OperatorInterventionError,
    asyncpg.PostgresConnectionError,
    nats.errors.ConnectionClosedError,
    nats.errors.ConnectionDrainingError,
    nats.errors.ConnectionReconnectingError,
    nats.errors.NoRespondersError,
    nats.errors.StaleConnectionError,
)
"""What drivers raise while a server is gone, going or coming."""


@dataclass(slots=True)
class _Outage:
    began: float
    newest: float
    told: bool = False


@dataclass(slots=True, kw_only=True)
class Outages:
    """The troubles of one service, by the part that has them."""

    log: structlog.typing.FilteringBoundLogger
    troubles: dict[str, str]
    _outages: dict[str, _Outage] = field(default_factory=dict[str, _Outage])

    def failed(self, part: str, group: BaseExceptionGroup[Exception]) -> bool:
        """Tell of a part that ended by errors; True when the log has lost its tail."""
        errors = tuple(_leaves(group))
        for error in errors:
            if isinstance(error, LogLostError):
                self.troubles[part] = str(error)
                self.log.critical("log_lost", error=str(error))
                return True
        if not all(isinstance(e, (TransientError, *_AWAY)) for e in errors):
            self.troubles[part] = "an unexpected error; see the log"
            self.log.error("loop_crashed", exc_info=group)
            return False
        # What broke tells more than what followed from it.
        first = min(errors, key=lambda e: isinstance(e, LeadershipLostError))
        self._left(part, first)
        return False

    def well(self, part: str) -> None:
        """Tell that a part works."""
        self.troubles.pop(part, None)
        outage = self._outages.pop(part, None)
        if outage is not None and outage.told:
            seconds = round(time.monotonic() - outage.began, 1)
            self.log.warning("works_again", part=part, after_seconds=seconds)

    def _left(self, part: str, error: BaseException) -> None:
        said = sentence(error)
        self.troubles[part] = said
        now = time.monotonic()
        outage = self._outages.get(part)
        if outage is None or now - outage.newest > _APART_SECONDS:
            outage = self._outages[part] = _Outage(began=now, newest=now)
            self.log.info("loop_left", part=part, error=said)
        outage.newest = now
        if not outage.told and now - outage.began > LASTS_SECONDS:
            outage.told = True
            seconds = round(now - outage.began, 1)
            self.log.warning("outage_lasts", part=part, error=said, seconds=seconds)


def sentence(error: BaseException) -> str:
    """Say an error in one line; a driver's own words need its name."""
    told = " ".join(str(error).split())
    if isinstance(error, TransientError):
        return told
    return f"a server went away ({type(error).__name__}: {told or 'no more is known'})"


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    else:
        yield error
