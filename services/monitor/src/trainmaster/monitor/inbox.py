"""A bounded queue between what arrives and who works it off.

Full means that the newest is dropped and counted: whoever publishes is never slowed
down, and memory never grows.
"""

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import Final

from trainmaster.monitor.settings import QUEUE_BYTES_MAX, QUEUE_MESSAGES_MAX

_OVERHEAD_BYTES: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """One message, not yet read; `metric`: it came on a subject of metrics."""

    subject: str
    body: bytes
    metric: bool = False

    @property
    def size(self) -> int:
        """Estimate what it costs to keep."""
        return len(self.body) + len(self.subject) + _OVERHEAD_BYTES


@dataclass(slots=True)
class Inbox:
    """Messages in the order they came."""

    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    bytes: int = 0
    _waiting: deque[Arrival] = field(default_factory=deque[Arrival])

    def put(self, arrival: Arrival) -> bool:
        """Take a message; False when it had to be dropped."""
        full = len(self._waiting) >= QUEUE_MESSAGES_MAX
        if full or self.bytes + arrival.size > QUEUE_BYTES_MAX:
            return False
        self._waiting.append(arrival)
        self.bytes += arrival.size
        self.arrived.set()
        return True

    async def get(self) -> Arrival:
        """Wait for the oldest message."""
        while not self._waiting:
            self.arrived.clear()
            await self.arrived.wait()
        arrival = self._waiting.popleft()
        self.bytes -= arrival.size
        return arrival
