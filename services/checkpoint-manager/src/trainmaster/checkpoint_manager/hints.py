"""Hears that a job may have a new checkpoint, so that it is looked for at once.

A hint that is lost costs a turn of the scanner and nothing else; a hint too many costs
one look. What it says is not believed: the scanner finds out by itself.
"""

import asyncio
from collections.abc import Callable

from nats.aio.msg import Msg

from trainmaster.core.ids import JobKey
from trainmaster.core.ingress_subjects import checkpoint_hints, parse_checkpoint_hint
from trainmaster.runtime.service import Env


class Hints:
    """Passes hints on until cancelled."""

    def __init__(self, env: Env, told: Callable[[JobKey], None]) -> None:
        self._env = env
        self._told = told

    async def run(self) -> None:
        """Listen; the connection subscribes again by itself after an outage."""
        heard = await self._env.bus.subscribe(checkpoint_hints(), self._hear)
        try:
            await asyncio.Event().wait()
        finally:
            if not self._env.bus.client.is_closed:
                await heard.unsubscribe()

    async def _hear(self, message: Msg) -> None:
        key = parse_checkpoint_hint(message.subject)
        if key is not None:
            self._told(key)
