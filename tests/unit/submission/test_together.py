"""What many ask for at once."""

import asyncio
from collections.abc import Sequence

import pytest

from trainmaster.core.errors import TransientError, UnreachableError
from trainmaster.submission.together import Together

pytestmark = pytest.mark.unit


class Doubling:
    """Doubles numbers; -1 is too much for now, 0 is a mistake of ours."""

    def __init__(self) -> None:
        self.trips: list[list[int]] = []
        self.may_go = asyncio.Event()

    async def work(self, numbers: Sequence[int]) -> Sequence[int]:
        self.trips.append(list(numbers))
        await self.may_go.wait()
        if -1 in numbers:
            raise TransientError
        return [2 * number if number else 1 // 0 for number in numbers]


def together(doubling: Doubling) -> Together[int, int]:
    return Together(doubling.work, what="the doubling")


async def test_who_comes_while_others_travel_shares_the_next_trip():
    doubling = Doubling()
    room = together(doubling)
    first = asyncio.create_task(room.ask(1))
    while not doubling.trips:
        await asyncio.wait([first], timeout=0.001)
    others = [asyncio.create_task(room.ask(number)) for number in (2, 3, 4)]
    await asyncio.wait(others, timeout=0.001)
    doubling.may_go.set()
    assert await asyncio.gather(first, *others) == [2, 4, 6, 8]
    assert doubling.trips == [[1], [2, 3, 4]]


async def test_a_failed_trip_fails_for_all_of_it_and_no_other():
    doubling = Doubling()
    doubling.may_go.set()
    room = together(doubling)
    found = await asyncio.gather(room.ask(1), room.ask(-1), return_exceptions=True)
    assert [type(each) for each in found] == [TransientError, TransientError]
    assert await room.ask(5) == 10


async def test_our_own_mistake_leaves_nobody_waiting(
    caplog: pytest.LogCaptureFixture,
):
    doubling = Doubling()
    doubling.may_go.set()
    room = together(doubling)
    with pytest.raises(UnreachableError, match="the outcome is not known"):
        await room.ask(0)
    assert await room.ask(5) == 10
    del caplog


async def test_who_leaves_early_does_not_stop_the_others():
    doubling = Doubling()
    room = together(doubling)
    leaving, staying = (asyncio.create_task(room.ask(n)) for n in (1, 2))
    while not doubling.trips:
        await asyncio.wait([leaving], timeout=0.001)
    leaving.cancel()
    doubling.may_go.set()
    assert await staying == 4
    assert leaving.cancelled() or leaving.cancelling()
