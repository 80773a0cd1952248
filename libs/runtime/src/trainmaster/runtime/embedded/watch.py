"""Owns that a server which died comes back: same port, same data, later and later."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from trainmaster.core.errors import TrainmasterError
from trainmaster.runtime.clock import pause
from trainmaster.runtime.embedded.server import Started
from trainmaster.runtime.telemetry import logger

LOOK_SECONDS: Final = 0.2
AGAIN_SECONDS: Final = (0.0, 0.5, 1.0, 2.0, 5.0)
"""How long to wait before each start that follows a death or a failed start."""
STEADY_SECONDS: Final = 30.0
"""A server that lived so long had no part in the deaths before."""


@dataclass(slots=True, kw_only=True)
class Watch:
    """Looks after one server; `trouble` says what is wrong with it, "" for nothing.

    `restart` must not move the server to another port: its clients stay.
    """

    name: str
    pid: Callable[[], int | None]
    restart: Callable[[], Awaitable[Started]]
    trouble: str = ""
    _failures: int = 0
    _back_at: float = 0.0

    @property
    def ready(self) -> bool:
        """Whether it runs, as far as was seen."""
        return not self.trouble

    async def run(self) -> None:
        """Look after it until cancelled."""
        while True:
            if self.pid() is None:
                await self._bring_back()
            await pause(LOOK_SECONDS)

    async def _bring_back(self) -> None:
        died_at = time.monotonic()
        if died_at - self._back_at > STEADY_SECONDS:
            self._failures = 0
        self.trouble = f"{self.name} died and is being started again"
        while True:
            await pause(AGAIN_SECONDS[min(self._failures, len(AGAIN_SECONDS) - 1)])
            self._failures += 1
            try:
                started = await self.restart()
            except (TrainmasterError, OSError) as error:
                self._tell_failure(error)
            else:
                break
        self._back_at = time.monotonic()
        self.trouble = ""
        seconds = self._back_at - died_at
        logger("stack").warning(
            "server_restarted",
            told=f"{self.name} died and runs again after {seconds:.2f} s "
            f"(pid {started.pid}, port {started.port}); running jobs were not touched",
        )

    def _tell_failure(self, error: Exception) -> None:
        told = str(error)
        self.trouble = f"it died and does not start again: {told.splitlines()[0]}"
        # The first one may be the dead server's last breath; later ones are the same.
        if self._failures in {2, len(AGAIN_SECONDS)}:
            logger("stack").error("server_not_restarted", server=self.name, error=told)
