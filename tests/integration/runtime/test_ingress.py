"""What becomes of a message whose handler fails: over, later again, or nothing."""

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Final

import pytest
from faststream.nats import JStream, NatsBroker, PullSub
from nats.aio.msg import Msg
from nats.js.api import ConsumerConfig

from trainmaster.core.errors import InvalidTokenError, UnreachableError
from trainmaster.core.messages import MetricSample
from trainmaster.runtime.bus import Bus, connect
from trainmaster.runtime.clock import pause
from trainmaster.runtime.embedded import EmbeddedNats, NatsUser
from trainmaster.runtime.ingress import (
    Manner,
    again_seconds,
    as_it_came,
    broker,
    running,
    subscriber_inbox,
)
from trainmaster.runtime.settings import Settings
from trainmaster.runtime.telemetry import Metrics

pytestmark = pytest.mark.integration

WITHIN_SECONDS: Final = 15.0
STREAM: Final = "IN"
EVERYTHING: Final = NatsUser(
    name="someone", password="a", publish=(">",), subscribe=(">",)
)


@pytest.fixture
async def nats(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Settings]:
    server = EmbeddedNats(data=tmp_path_factory.mktemp("nats"), users=(EVERYTHING,))
    await server.start()
    yield Settings.model_validate(
        {"nats_url": server.url, "nats_user": "someone", "nats_password": "a"}
    )
    await server.stop()


@pytest.fixture
async def bus(nats: Settings) -> AsyncGenerator[Bus]:
    bus = await connect(nats.bus, name="test")
    answer = await bus.ask_api(
        f"STREAM.CREATE.{STREAM}", {"name": STREAM, "subjects": ["in.>"]}
    )
    assert "error" not in answer
    yield bus
    await bus.close()


async def until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WITHIN_SECONDS
    while not holds():
        assert time.monotonic() < deadline, f"{what} did not come true in time"
        await pause(0.01)


class Handler:
    """Fails as often as it is told, and notes every call."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls: list[float] = []
        self.bodies: list[bytes] = []

    async def __call__(self, message: Msg) -> None:
        self.calls.append(time.monotonic())
        if self.errors:
            raise self.errors.pop(0)
        self.bodies.append(message.data)


@asynccontextmanager
async def listening(
    nats: Settings, handler: Handler, manner: Manner | None = None
) -> AsyncGenerator[Metrics]:
    """Let the handler have what is stored below in.> and said below core.>."""
    metrics = Metrics()
    made = broker(nats, metrics, manner or Manner())
    _subscribe(made, nats, handler.__call__)
    async with running(made, nats):
        yield metrics


def _subscribe(made: NatsBroker, nats: Settings, handle: Callable[..., object]) -> None:
    made.subscriber(
        "in.>",
        stream=JStream(STREAM, declare=False),
        durable="someone",
        pull_sub=PullSub(batch_size=1, timeout=1),
        inbox_prefix=subscriber_inbox(nats),
        config=ConsumerConfig(ack_wait=30, max_deliver=20),
        decoder=as_it_came,
        no_reply=True,
    )(handle)
    made.subscriber("core.>", decoder=as_it_came, no_reply=True)(handle)


async def pending(bus: Bus) -> tuple[int, int]:
    """How many messages are not acknowledged, and how many were not delivered."""
    info = await bus.ask_api(f"CONSUMER.INFO.{STREAM}.someone", {})
    return info["num_ack_pending"], info["num_pending"]


async def test_a_message_that_is_handled_is_over(nats: Settings, bus: Bus):
    handler = Handler()
    async with listening(nats, handler):
        await bus.client.publish("in.x", b"one")
        await until(lambda: handler.bodies == [b"one"], "the message is handled")
        await _settled(bus)
    assert len(handler.calls) == 1


async def _settled(bus: Bus) -> None:
    deadline = time.monotonic() + WITHIN_SECONDS
    while await pending(bus) != (0, 0):
        assert time.monotonic() < deadline, "messages stay pending"
        await pause(0.02)


async def test_a_failed_message_comes_again_later_and_later(nats: Settings, bus: Bus):
    handler = Handler(*(RuntimeError("away") for _ in range(3)))
    async with listening(nats, handler) as metrics:
        await bus.client.publish("in.x", b"one")
        await until(lambda: handler.bodies == [b"one"], "the message is handled")
        await _settled(bus)
    gaps = [b - a for a, b in zip(handler.calls, handler.calls[1:], strict=False)]
    assert len(gaps) == 3
    assert all(
        gap >= again_seconds(tries) * 0.9 for tries, gap in enumerate(gaps, start=1)
    )
    assert next(iter(metrics.undecodable.collect())).samples[0].value == 3


async def test_a_message_nobody_can_ever_read_comes_once(nats: Settings, bus: Bus):
    handler = Handler(InvalidTokenError(name="team", value="a b"))
    async with listening(nats, handler):
        await bus.client.publish("in.x", b"bad")
        await bus.client.publish("in.x", b"good")
        await until(lambda: handler.bodies == [b"good"], "the next is handled")
        await _settled(bus)
    assert len(handler.calls) == 2


class Park:
    """Takes what nobody can work off; is away as often as it is told."""

    def __init__(self, *, away: int = 0) -> None:
        self.away = away
        self.parked: list[tuple[bytes, str]] = []

    async def __call__(self, message: Msg, reason: str) -> None:
        if self.away:
            self.away -= 1
            raise UnreachableError(what="PARKED", address="here", hint="again")
        self.parked.append((message.data, reason))


async def test_what_nobody_can_ever_read_is_parked_with_the_reason(
    nats: Settings, bus: Bus
):
    park = Park(away=1)
    bad = [InvalidTokenError(name="team", value="a b") for _ in range(2)]
    async with listening(nats, Handler(*bad), Manner(park=park)):
        await bus.client.publish("in.x", b"bad")
        await until(lambda: bool(park.parked), "it is parked")
        await _settled(bus)
    [(body, reason)] = park.parked
    assert body == b"bad"
    assert reason.startswith("InvalidTokenError: team 'a b'")


async def test_what_always_meets_an_unexpected_error_is_parked_after_some_tries(
    nats: Settings, bus: Bus
):
    park, handler = Park(), Handler(*(RuntimeError("boom") for _ in range(9)))
    async with listening(nats, handler, Manner(park=park, tries=3)):
        await bus.client.publish("in.x", b"bad")
        await until(lambda: bool(park.parked), "it is parked")
        await _settled(bus)
    assert park.parked == [(b"bad", "RuntimeError: boom")]
    assert len(handler.calls) == 3


async def test_an_outage_parks_nothing(nats: Settings, bus: Bus):
    away = [UnreachableError(what="a", address="b", hint="c") for _ in range(3)]
    park, handler = Park(), Handler(*away)
    async with listening(nats, handler, Manner(park=park, tries=1)):
        await bus.client.publish("in.x", b"good")
        await until(lambda: handler.bodies == [b"good"], "it is handled")
        await _settled(bus)
    assert park.parked == []


async def test_an_error_on_a_core_subject_stops_nothing(nats: Settings, bus: Bus):
    handler = Handler(RuntimeError("boom"), ValueError("boom"))
    async with listening(nats, handler) as metrics:
        await bus.client.publish("core.x", b"one")
        await bus.client.publish("core.x", b"two")
        await bus.client.publish("core.x", b"three")
        await until(lambda: handler.bodies == [b"three"], "the third is handled")
    failed = metrics.registry.get_sample_value("tm_events_undecodable_total")
    assert failed == 2


async def test_nothing_is_answered_to_who_asks(nats: Settings, bus: Bus):
    handler = Handler()
    answers: list[bytes] = []

    async def keep(message: Msg) -> None:
        answers.append(message.data)

    subscription = await bus.subscribe("reply.here", keep)
    async with listening(nats, handler):
        sample = MetricSample(step=1).to_json()
        await bus.client.publish("core.x", sample, reply="reply.here")
        await until(lambda: handler.bodies == [sample], "it is handled")
        await bus.client.flush()
    await subscription.unsubscribe()
    assert answers == []


async def test_without_a_server_it_says_so_within_seconds():
    settings = Settings.model_validate({"nats_url": "nats://127.0.0.1:1"})
    began = time.monotonic()
    with pytest.raises(UnreachableError, match=r"127\.0\.0\.1:1"):
        async with running(broker(settings, Metrics(), Manner()), settings):
            pass
    assert time.monotonic() - began < 10


def test_waiting_doubles_up_to_a_limit():
    assert [again_seconds(n) for n in (0, 1, 2, 3)] == [0.1, 0.1, 0.2, 0.4]
    assert again_seconds(1_000_000) == 30.0
