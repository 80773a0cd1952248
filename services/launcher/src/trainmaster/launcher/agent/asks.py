"""Answers small questions about this node's files, also after `close`.

Which checkpoints are whole, and where those went that had to be moved out of the
framework's sight.
"""

import asyncio
from typing import Final

from nats.aio.msg import Msg
from pydantic import ValidationError

from trainmaster.core import subjects
from trainmaster.core.errors import TrainmasterError
from trainmaster.core.ids import NodeKey
from trainmaster.core.messages import AsideReply, AsideRequest, ScanReply, ScanRequest
from trainmaster.launcher.agent.answers import ASIDE, SCAN
from trainmaster.launcher.agent.hands import Hands
from trainmaster.launcher.agent.ranks import job_user
from trainmaster.runtime.bus import Bus
from trainmaster.runtime.telemetry import logger

_AT_ONCE: Final = 4
_Words = tuple[type[ScanRequest | AsideRequest], type[ScanReply | AsideReply]]
_QUESTIONS: Final[dict[str, _Words]] = {
    SCAN: (ScanRequest, ScanReply),
    ASIDE: (AsideRequest, AsideReply),
}


class Asks:
    """The questions that one node answers, a few at once."""

    def __init__(self, bus: Bus, hands: Hands, tasks: asyncio.TaskGroup) -> None:
        self._bus = bus
        self._hands = hands
        self._tasks = tasks
        self._turn = asyncio.Semaphore(_AT_ONCE)
        self._logger = logger("agent")

    async def listen(self, node: NodeKey) -> None:
        """Begin to answer; it goes on by itself, also after a reconnect."""
        for question in _QUESTIONS:
            await self._bus.subscribe(subjects.ask(node, question), self._receive)

    async def _receive(self, message: Msg) -> None:
        if message.reply:
            self._tasks.create_task(self._answer(message))

    async def _answer(self, message: Msg) -> None:
        question = message.subject.rpartition(".")[2]
        async with self._turn:
            reply = await self._reply(question, message.data)
        if self._bus.connected:
            await self._bus.client.publish(message.reply, reply)

    async def _reply(self, question: str, body: bytes) -> bytes:
        request, reply = _QUESTIONS[question]
        try:
            user = job_user(request.from_json(body).user)
            return await self._hands.ask(user, question, body)
        except (TrainmasterError, ValidationError) as error:
            self._logger.warning("not_answered", question=question, error=str(error))
            return reply(error=str(error)).to_json()
