"""Watches how full the log is, so that no job is taken that could not end any more."""

import contextlib

from trainmaster.core import subjects
from trainmaster.core.errors import UnreachableError
from trainmaster.runtime.clock import pause
from trainmaster.runtime.service import Env
from trainmaster.submission.requests import ROOM_FACT, Room
from trainmaster.submission.settings import ROOM_LOOK_SECONDS


class RoomWatch:
    """States as a fact how much of the log is used; a standby states it as well."""

    def __init__(self, env: Env) -> None:
        self._env = env
        self._known = Room()

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            with contextlib.suppress(UnreachableError):  # the loop's to report
                await self.look()
            await pause(ROOM_LOOK_SECONDS)

    async def look(self) -> None:
        """Ask the log once. Raises UnreachableError."""
        answer = await self._env.bus.ask_api(f"STREAM.INFO.{subjects.JOBS}", {})
        if "error" in answer:
            return  # no stream: the loop says so
        room = Room(
            used_bytes=answer["state"]["bytes"],
            most_bytes=max(answer["config"]["max_bytes"], 0),  # -1: no bound
        )
        if room.full or room.full != self._known.full:
            self._env.facts.put(ROOM_FACT, room)
        self._known = room
