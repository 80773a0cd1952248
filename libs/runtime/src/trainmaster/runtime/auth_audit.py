"""Owns how a refusal gets onto the log: a few each second, the others as a count.

What was done needs no record of its own: the event that did it says by whom and from
where. A flood of refused requests must fill neither the log nor this process.
"""

import asyncio
import time
import uuid
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from trainmaster.core.access import Refusal
from trainmaster.core.decision import Write
from trainmaster.core.errors import UnreachableError
from trainmaster.core.ids import TOKEN, TeamKey
from trainmaster.runtime.auth_limits import Limits

NO_TEAM: Final = "-"
_PER_SECOND: Final = 1.0
_BURST: Final = 20
_QUEUE_MAX: Final = 1000
_TEXT_CHARACTERS_MAX: Final = 300


class Refusals:
    """Tells refusals of one service; who is refused often is told less often."""

    def __init__(
        self, kind: type[Refusal], say: Callable[[Write], Awaitable[object]]
    ) -> None:
        self._kind = kind
        self._say = say
        self._limits = Limits(per_second=_PER_SECOND, burst=_BURST)
        self._queue: deque[tuple[str, Refusal]] = deque()
        self._suppressed: dict[str, int] = {}
        self._wake = asyncio.Event()

    def add(self, refusal: Refusal, *, team: str = "") -> None:
        """Take one in; it is told later, or counted with the next one."""
        who = refusal.by  # strangers, whose names nobody knows, share one allowance
        full = len(self._queue) >= _QUEUE_MAX
        if full or self._limits.wait_seconds(who, time.monotonic()):
            self._suppressed[who] = self._suppressed.get(who, 0) + 1
            return
        told = {name: _short(value) for name, value in refusal}
        told["suppressed"] = self._suppressed.pop(who, 0)
        place = team if TOKEN.fullmatch(team) else NO_TEAM
        self._queue.append((place, self._kind.model_validate(told)))
        self._wake.set()

    async def run(self) -> None:
        """Tell them until cancelled; what the log does not take is counted."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._queue:
                team, refusal = self._queue.popleft()
                write = Write(key=TeamKey(team), event=refusal, cause=uuid.uuid4().hex)
                try:
                    await self._say(write)
                except UnreachableError:
                    missed = self._suppressed.get(refusal.by, 0)
                    self._suppressed[refusal.by] = missed + 1 + refusal.suppressed


def _short(value: object) -> object:
    """Bound what a stranger wrote, and keep it in one printable line."""
    if not isinstance(value, str):
        return value
    printable = "".join(c if c.isprintable() else "?" for c in value)
    return printable[:_TEXT_CHARACTERS_MAX]
