"""Buckets that fill as time passes, and refusals that never flood the log."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.core.access import Refusal, RequestRefused
from trainmaster.core.decision import Write
from trainmaster.core.errors import UnreachableError
from trainmaster.core.ids import TeamKey
from trainmaster.runtime.auth_audit import Refusals
from trainmaster.runtime.auth_limits import Limits
from trainmaster.runtime.clock import pause

pytestmark = pytest.mark.unit


@given(st.lists(st.floats(min_value=0, max_value=0.3), max_size=200))
def test_never_more_than_the_burst_and_what_time_gives(waits: list[float]):
    limits, now, taken = Limits(per_second=10, burst=5), 0.0, 0
    for wait in waits:
        now += wait
        taken += not limits.wait_seconds("a", now)
    assert taken <= 5 + now * 10 + 1e-6


def test_after_the_time_it_says_there_is_one_again():
    limits = Limits(per_second=2, burst=1)
    assert limits.wait_seconds("a", 0.0) == 0.0
    wait = limits.wait_seconds("a", 0.0)
    assert wait == pytest.approx(0.5)
    assert limits.wait_seconds("a", wait) == 0.0


def test_each_name_has_its_own_and_many_names_are_bounded():
    limits = Limits(per_second=1, burst=1)
    assert all(limits.wait_seconds(str(n), 0.0) == 0.0 for n in range(25_000))


def test_a_rate_of_zero_is_no_limit():
    limits = Limits(per_second=0, burst=1)
    assert not any(limits.wait_seconds("a", 0.0) for _ in range(100))


# ------------------------------------------------------------------------- refusals


class Ear:
    """Hears what is said, or is away."""

    def __init__(self) -> None:
        self.heard: list[Write] = []
        self.away = False

    async def say(self, write: Write) -> int:
        if self.away:
            raise UnreachableError(what="the log", address="here", hint="again")
        self.heard.append(write)
        return len(self.heard)

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[Refusals]:
        refusals = Refusals(RequestRefused, self.say)
        task = asyncio.create_task(refusals.run())
        try:
            yield refusals
        finally:
            task.cancel()
            await asyncio.wait([task])

    async def hears(self, count: int) -> list[Write]:
        end = time.monotonic() + 10
        while len(self.heard) < count:
            assert time.monotonic() < end, f"only {len(self.heard)}"
            await pause(0.001)
        return self.heard


async def test_a_refusal_is_told_below_its_team_as_what_the_service_says():
    ear = Ear()
    async with ear.listening() as refusals:
        refusals.add(Refusal(by="token:ci", status=403), team="vision")
        refusals.add(Refusal(status=401), team="no > team")
        first, second = await ear.hears(2)
    assert first.key == TeamKey("vision")
    assert isinstance(first.event, RequestRefused)
    assert second.key == TeamKey("-")
    assert first.cause != second.cause


async def test_a_flood_is_told_as_a_count_and_hides_nobody_else():
    ear = Ear()
    async with ear.listening() as refusals:
        for _ in range(500):
            refusals.add(Refusal(status=401))
        refusals.add(Refusal(by="token:ci", status=403))
        told = [w.event for w in await ear.hears(21)]
    assert len(told) == 21
    assert isinstance(told[-1], Refusal)
    assert told[-1].by == "token:ci"


async def test_what_could_not_be_told_is_counted_with_the_next():
    ear = Ear()
    ear.away = True
    async with ear.listening() as refusals:
        refusals.add(Refusal(by="a", status=403))
        for _ in range(3):
            await pause(0)
        ear.away = False
        refusals.add(Refusal(by="a", status=403))
        [write] = await ear.hears(1)
    assert isinstance(write.event, Refusal)
    assert write.event.suppressed == 1


async def test_what_a_stranger_wrote_stays_one_short_line():
    ear = Ear()
    async with ear.listening() as refusals:
        refusals.add(Refusal(request="GET /\n\x1b[31m" + "x" * 9999))
        [write] = await ear.hears(1)
    assert isinstance(write.event, Refusal)
    assert write.event.request.isprintable()
    assert len(write.event.request) == 300
