"""Owns the waiting room of a shared trip: what many ask for is done in one go."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Generic, TypeVar

from trainmaster.core.errors import TransientError, UnreachableError

T = TypeVar("T")
R = TypeVar("R")
_MOST: Final = 500


class Together(Generic[T, R]):
    """Does `work` for all who wait at that moment; the next ones wait for the next.

    `work` returns one result for each, in order. When it fails, all of that trip fail.
    """

    def __init__(
        self, work: Callable[[Sequence[T]], Awaitable[Sequence[R]]], *, what: str
    ) -> None:
        self._work = work
        self._what = what
        self._waiting: list[tuple[T, asyncio.Future[R]]] = []
        self._trips: asyncio.Task[None] | None = None

    async def ask(self, wish: T) -> R:
        """Have this done, with others if others ask."""
        answer: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append((wish, answer))
        if self._trips is None:
            self._trips = asyncio.create_task(self._make_trips())
        return await answer

    async def _make_trips(self) -> None:
        try:
            while self._waiting:
                taken = self._waiting[:_MOST]
                del self._waiting[:_MOST]
                trip = asyncio.create_task(self._make_trip(taken))
                await asyncio.wait([trip])  # an error ends one trip, never the queue
        finally:
            self._trips = None

    async def _make_trip(self, taken: Sequence[tuple[T, "asyncio.Future[R]"]]) -> None:
        open_answers = [answer for _, answer in taken]
        failure: TransientError = UnreachableError(
            what=self._what, address="its server", hint="the outcome is not known"
        )
        try:
            results = await self._work([wish for wish, _ in taken])
            for answer, result in zip(open_answers, results, strict=True):
                if not answer.done():
                    answer.set_result(result)
        except TransientError as error:
            failure = error
        finally:
            for answer in open_answers:  # also after a bug, so that nobody hangs
                if not answer.done():
                    answer.set_exception(failure)
