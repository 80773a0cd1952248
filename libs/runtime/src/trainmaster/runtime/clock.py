"""The only place that reads a clock or sleeps; everybody else is given the time."""

import asyncio
import time
from datetime import UTC, datetime, timedelta


def wall() -> datetime:
    """Read this machine's clock; only for what people read, never for deadlines."""
    return datetime.now(UTC)


async def pause(seconds: float) -> None:
    """Wait."""
    await asyncio.sleep(seconds)


class ServerClock:
    """The log server's time: that of the newest entry plus the time since then."""

    def __init__(self) -> None:
        self._newest = wall()
        self._read_at = time.monotonic()
        self._seen = False

    def observe(self, at: datetime) -> None:
        """Take over a server time just received; it never runs backwards."""
        if not self._seen or at > self.now():
            self._newest, self._read_at, self._seen = at, time.monotonic(), True

    def now(self) -> datetime:
        """Say what time it is at the server, as far as known."""
        return self._newest + timedelta(seconds=time.monotonic() - self._read_at)
