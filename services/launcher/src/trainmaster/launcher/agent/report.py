"""Says facts on MEMBERS until the log has them, in order for each job.

Nothing is lost when the agent dies: every fact of an attempt that is not closed is on
this node's disk and is said again. A fact's id follows from its content, so that the
log drops a repeat that comes soon, and a later one changes nothing.
"""

import asyncio
import contextlib
import hashlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from trainmaster.core.decision import Write
from trainmaster.core.errors import NotAllowedError, TransientError
from trainmaster.core.facts import MemberFact
from trainmaster.core.ids import JobId, MemberKey
from trainmaster.launcher.agent.settings import RETRY_SECONDS
from trainmaster.runtime.bus import Bus
from trainmaster.runtime.failpoints import FAILPOINTS
from trainmaster.runtime.log import Log
from trainmaster.runtime.telemetry import logger

_CAUSE_DIGITS: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fact:
    write: Write
    then: Callable[[], None] | None


class Reporter:
    """One lane of facts for each job; lanes do not wait for each other."""

    def __init__(self, log: Log, tasks: asyncio.TaskGroup) -> None:
        self._log = log
        self._tasks = tasks
        self._lanes: dict[JobId, deque[_Fact]] = {}
        self._reconnects = Reconnects(log.bus)
        self._logger = logger("agent")

    def say(
        self,
        key: MemberKey,
        event: MemberFact,
        *,
        then: Callable[[], None] | None = None,
    ) -> None:
        """Say a fact as soon as can be; `then` is called when the log has it."""
        fact = _Fact(write=_write(key, event), then=then)
        lane = self._lanes.get(key.job)
        if lane is None:
            lane = self._lanes[key.job] = deque()
            self._tasks.create_task(self._empty(key.job, lane))
        lane.append(fact)

    async def _empty(self, job: JobId, lane: deque[_Fact]) -> None:
        while lane:
            fact = lane[0]
            await self._store(fact.write)
            FAILPOINTS.reach("agent.after_say")
            lane.popleft()
            if fact.then is not None:
                fact.then()
        del self._lanes[job]

    async def _store(self, write: Write) -> None:
        """Say one fact until it is stored."""
        while not await self._try(write):
            continue

    async def _try(self, write: Write) -> bool:
        """Say one fact once; a reconnect ends the wait for an answer that is lost.

        False asks for another try, after a while if this one was refused.
        """
        saying = asyncio.create_task(self._log.say(write))
        back = asyncio.ensure_future(self._reconnects.following())
        try:
            await asyncio.wait({saying, back}, return_when=asyncio.FIRST_COMPLETED)
            if not saying.done():
                return False
            await saying
        except (TransientError, NotAllowedError) as error:
            self._logger.warning(
                "fact_not_stored", error=str(error), fact=write.event.kind
            )
            await self._reconnects.wait(within_seconds=RETRY_SECONDS)
            return False
        finally:
            saying.cancel()
            back.cancel()
        return True


class Reconnects:
    """The moments at which NATS is back."""

    def __init__(self, bus: Bus) -> None:
        self._back = asyncio.Event()
        bus.on_reconnect(self._ring)

    async def following(self) -> None:
        """Wait for the next one."""
        await self._back.wait()

    async def wait(self, *, within_seconds: float) -> None:
        """Wait for the next one, but not longer than this."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_seconds):
                await self.following()

    def _ring(self) -> None:
        self._back.set()
        self._back = asyncio.Event()


def _write(key: MemberKey, event: MemberFact) -> Write:
    content = hashlib.sha256(event.to_json()).hexdigest()
    return Write(key=key, event=event, cause=content[:_CAUSE_DIGITS])
