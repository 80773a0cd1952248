"""Which services are there: whoever is away extends the deadlines it would have met."""

import time
from datetime import timedelta
from typing import Final

from nats.aio.msg import Msg

from trainmaster.core.moment import Interval
from trainmaster.reaper.policy import BLIND_FACT
from trainmaster.runtime.clock import pause
from trainmaster.runtime.service import Env

WATCHED: Final = ("launcher", "checkpoint-manager")
_LOOK_SECONDS: Final = 1.0
_AHEAD_SECONDS: Final = 3.0
_KEPT: Final = 100


class Liveness:
    """Listens to the services' heartbeats and states their absences as facts."""

    def __init__(self, env: Env, *, silent_seconds: float) -> None:
        self._env = env
        self._silent_seconds = silent_seconds
        self._heard: dict[str, float] = {n: time.monotonic() for n in WATCHED}
        self._absences: dict[str, list[Interval]] = {name: [] for name in WATCHED}
        self._away: set[str] = set()

    async def run(self) -> None:
        """Watch until cancelled."""
        subscription = await self._env.bus.subscribe(
            "tm.status.service.*", self._receive
        )
        try:
            while True:
                await pause(_LOOK_SECONDS)
                for name in WATCHED:
                    self._look(name)
        finally:
            await subscription.unsubscribe()

    async def _receive(self, message: Msg) -> None:
        name = message.subject.rpartition(".")[2]
        if name in self._heard:
            self._look(name)
            self._away.discard(name)
            self._heard[name] = time.monotonic()

    def _look(self, name: str) -> None:
        silent = time.monotonic() - self._heard[name]
        loop = self._env.loop
        if silent < self._silent_seconds or loop is None:
            return
        now = loop.clock.now()
        absences = self._absences[name]
        if name in self._away:
            absences.pop()
        self._away.add(name)
        # While it is away the end lies ahead, so that no deadline falls due meanwhile.
        absences.append(
            Interval(
                start=now - timedelta(seconds=silent),
                end=now + timedelta(seconds=_AHEAD_SECONDS),
            )
        )
        del absences[:-_KEPT]
        self._env.facts.put(BLIND_FACT + name, tuple(absences))
