"""Owns who is waiting for what: followers are woken by the job they follow."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

from trainmaster.console.state import State
from trainmaster.core.decision import Changed
from trainmaster.core.ids import JobKey

EVERYTHING = ""
"""What a follower of all events waits for."""


class Bell:
    """An effect that wakes followers; they look at the state, so no ring is lost."""

    def __init__(self) -> None:
        self._waiting: dict[str, set[asyncio.Event]] = {}

    @contextmanager
    def listen(self, job: str) -> Generator[asyncio.Event]:
        """Be woken when something of this job changes."""
        wake = asyncio.Event()
        self._waiting.setdefault(job, set()).add(wake)
        try:
            yield wake
        finally:
            left = self._waiting[job]
            left.discard(wake)
            if not left:
                del self._waiting[job]

    def ring(self, job: str) -> None:
        """Wake whoever listens to one job."""
        for wake in self._waiting.get(job, ()):
            wake.set()

    def want(self, state: State, changed: set[Changed] | None) -> None:
        """Wake whoever follows what changed."""
        del state
        if changed is None:
            for job in self._waiting:
                self.ring(job)
            return
        if not self._waiting:
            return
        jobs = {key.job for _, key in changed if isinstance(key, JobKey)}
        for job in {*jobs, EVERYTHING}:
            self.ring(job)

    async def run(self) -> None:
        """Nothing is left to do later."""
        await asyncio.Event().wait()
