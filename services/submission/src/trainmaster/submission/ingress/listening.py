"""Takes messages from INGRESS while this replica leads, and lets go when it does not.

FastStream delivers, with our acknowledgement policy; the clerk works off.
"""

from dataclasses import dataclass, field

import structlog
from faststream.nats import NatsRouter

from trainmaster.core import ingress_subjects, subjects
from trainmaster.core.errors import UnreachableError
from trainmaster.core.ids import JobKey, NodeKey
from trainmaster.core.nodes import Node
from trainmaster.core.record import Job
from trainmaster.runtime.clock import pause
from trainmaster.runtime.ingress import Manner, broker, running, take_from
from trainmaster.runtime.service import Env
from trainmaster.runtime.telemetry import logger
from trainmaster.submission.desk import NotReadyError
from trainmaster.submission.ingress.clerk import Clerk
from trainmaster.submission.ingress.settings import (
    FORGET_SECONDS,
    LEADING_LOOK_SECONDS,
)
from trainmaster.submission.ingress.store import AnswerBook
from trainmaster.submission.state import State


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """Runs beside the loop; a standby takes nothing."""

    env: Env
    clerk: Clerk
    _log: structlog.typing.FilteringBoundLogger = field(
        default_factory=lambda: logger("submission")
    )

    async def run(self) -> None:
        """Take messages until cancelled, again and again while there is no server."""
        while True:
            await self._until(leading=True)
            try:
                await self._listen()
            except UnreachableError as error:
                self._log.warning("ingress_unreachable", error=str(error))
                await pause(LEADING_LOOK_SECONDS)

    def router(self) -> NatsRouter:
        """Say what is handled by whom."""
        router = NatsRouter()
        take_from(
            router,
            subjects.INGRESS,
            ingress_subjects.everything_said(),
            settings=self.env.settings,
        )(self.clerk.take)
        return router

    async def _listen(self) -> None:
        env = self.env
        manner = Manner(park=self.clerk.parking.park)
        made = broker(env.settings, env.metrics, manner)
        made.include_router(self.router())
        async with running(made, env.settings):
            await self._until(leading=False)

    async def _until(self, *, leading: bool) -> None:
        while leads(self.env) is not leading:
            await pause(LEADING_LOOK_SECONDS)


def leads(env: Env) -> bool:
    """Tell whether this replica decides now, on a log that it hears."""
    decides = env.loop is not None and env.loop.caught_up.is_set()
    return decides and env.bus.connected


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSight:
    """What the loop's state says of jobs and nodes."""

    env: Env

    def job(self, key: JobKey) -> Job | None:
        """Look at a live job."""
        return self._state().jobs.get(key)

    def node(self, key: NodeKey) -> Node | None:
        """Look at a node that was registered once."""
        found = self._state().nodes.get(key)
        return found if found is not None and found.registered_at else None

    def _state(self) -> State:
        if self.env.loop is None or not leads(self.env):
            raise NotReadyError(reason="it is catching up with the log")
        state: State = self.env.loop.state
        return state


async def forget_old(book: AnswerBook) -> None:
    """Drop old answers from time to time, until cancelled."""
    while True:
        await pause(FORGET_SECONDS)
        await book.forget()
