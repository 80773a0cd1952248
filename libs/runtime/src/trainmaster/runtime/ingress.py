"""The one way to make a FastStream broker: for what is not the log.

FastStream's own policy drops a message at its first error, and its negative
acknowledgement comes back at once, for ever. Here a message that can never be worked
off is parked with the reason and terminated; so is one that met the same unexpected
error a few times. One that met an outage is tried again later and later, for ever. On
core subjects there is nothing to acknowledge: an error is logged, counted and over.

A subscriber needs `no_reply=True`, or its result is published where the server expects
nothing; one that pulls needs `inbox_prefix=subscriber_inbox(settings)`, or under
permissions it silently receives nothing. Streams are never declared here.

Arguments are injected only on request: FastStream hands each to a thread first, which
costs ten times what the rest does. Without it a handler gets what its decoder returns.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import nats.errors
from faststream import AckPolicy, BaseMiddleware, ContextRepo
from faststream.exceptions import HandlerException, NackMessage, RejectMessage
from faststream.message import StreamMessage
from faststream.nats import JStream, NatsBroker, NatsRouter, PullSub
from faststream.security import SASLPlaintext
from nats.aio.msg import Msg
from nats.js.api import ConsumerConfig
from pydantic import ValidationError
from typing_extensions import override

from trainmaster.core.errors import PermanentError, TransientError, UnreachableError
from trainmaster.runtime.settings import Settings
from trainmaster.runtime.telemetry import Metrics, logger

_CONNECT_SECONDS: Final = 5.0
_RECONNECT_SECONDS: Final = 0.5
_PING_SECONDS: Final = 5
_PENDING_BYTES: Final = 16 * 2**20
_GRACEFUL_SECONDS: Final = 0.5
_AGAIN_FIRST_SECONDS: Final = 0.1
_AGAIN_MOST_SECONDS: Final = 30.0
_JETSTREAM: Final = "$JS.ACK."
TRIES_MAX: Final = 8
"""So often is a message tried that meets an error nobody expected."""
_TOGETHER: Final = 16
_PULL_SECONDS: Final = 1.0
_TAKEN_SECONDS: Final = 5.0
"""After so long without a word a message is delivered again: its taker has died."""
_PERMANENT: Final = (ValidationError, PermanentError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How a broker behaves: what it tells of its connection, what it injects.

    `park` is given what will never be worked off, with the reason: also what met an
    unexpected error so many `tries`.
    """

    lost: Callable[[], None] = lambda: None
    back: Callable[[], None] = lambda: None
    injects: bool = False
    park: Callable[[Msg, str], Awaitable[object]] | None = None
    tries: int = TRIES_MAX


def broker(settings: Settings, metrics: Metrics, manner: Manner) -> NatsBroker:
    """Make one service's broker; it reconnects for ever once `running`."""
    log, said = logger(settings.nats_user), set[str]()

    async def on_error(error: Exception) -> None:
        text = f"{type(error).__name__}: {error}"
        if text not in said:  # every try to reconnect would say it again
            said.add(text)
            log.warning("ingress_trouble", error=text)

    async def on_lost() -> None:
        manner.lost()

    async def on_back() -> None:
        said.clear()
        log.info("ingress_back")
        manner.back()

    return NatsBroker(
        settings.nats_url,
        name=f"{settings.nats_user}-ingress",
        security=SASLPlaintext(
            username=settings.nats_user,
            password=settings.nats_password.get_secret_value(),
        ),
        inbox_prefix=f"_INBOX_{settings.nats_user}",
        max_reconnect_attempts=-1,
        reconnect_time_wait=_RECONNECT_SECONDS,  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        ping_interval=_PING_SECONDS,
        pending_size=_PENDING_BYTES,
        graceful_timeout=_GRACEFUL_SECONDS,
        ack_policy=AckPolicy.NACK_ON_ERROR,
        middlewares=(partial(Acknowledge, metrics=metrics, manner=manner),),
        error_cb=on_error,
        disconnected_cb=on_lost,
        reconnected_cb=on_back,
        apply_types=manner.injects,
        logger=None,
    )


def subscriber_inbox(settings: Settings) -> bytes:
    """Name the inbox prefix that a pulling subscriber must be given."""
    return f"_INBOX_{settings.nats_user}.".encode()


def take_from(
    router: NatsRouter, stream: str, subject: str, *, settings: Settings
) -> Callable[[Callable[[Msg], Awaitable[None]]], object]:
    """Work a stream off with one durable consumer of the service's own name.

    Messages come several at once: a handler that needs an order keeps it by itself.
    """
    return router.subscriber(
        subject,
        stream=JStream(stream, declare=False),
        durable=settings.nats_user,
        pull_sub=PullSub(batch_size=_TOGETHER, timeout=_PULL_SECONDS),
        inbox_prefix=subscriber_inbox(settings),
        config=ConsumerConfig(
            ack_wait=_TAKEN_SECONDS, max_deliver=-1, max_ack_pending=1024
        ),
        decoder=as_it_came,
        no_reply=True,
    )


async def as_it_came(message: StreamMessage[Msg]) -> Msg:
    """Decode nothing: the models of the contract read the wire form themselves."""
    return message.raw_message


@asynccontextmanager
async def running(made: NatsBroker, settings: Settings) -> AsyncGenerator[None]:
    """Connect and subscribe; stop afterwards. Raises UnreachableError."""
    try:
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                await made.start()
        except (OSError, TimeoutError, nats.errors.Error) as error:
            raise UnreachableError(
                what="NATS",
                address=settings.nats_url,
                hint=f"{type(error).__name__}; is it running? `tm up` starts one",
            ) from error
        yield
    finally:
        await made.stop()


class Acknowledge(BaseMiddleware):
    """Decides what becomes of a message whose handler failed."""

    def __init__(
        self,
        msg: Any,
        /,
        *,
        context: ContextRepo,
        metrics: Metrics,
        manner: Manner,
    ) -> None:
        super().__init__(msg, context=context)
        self._metrics = metrics
        self._manner = manner

    @override
    async def consume_scope(
        self,
        call_next: Callable[[StreamMessage[Any]], Awaitable[Any]],
        msg: StreamMessage[Any],
    ) -> Any:
        """Handle one message: done, never, or again later."""
        try:
            return await call_next(msg)
        except HandlerException:
            raise  # the handler has decided by itself
        except Exception as error:
            self._complain(msg, error)
            if is_stored(msg):
                raise await self._verdict(msg, error) from error

    async def _verdict(
        self, msg: StreamMessage[Any], error: Exception
    ) -> HandlerException:
        outage = isinstance(error, TransientError)
        if isinstance(error, _PERMANENT) or (
            not outage and _tries(msg) >= self._manner.tries
        ):
            return await self._given_up(msg, error)
        return _later(msg)

    async def _given_up(
        self, msg: StreamMessage[Any], error: Exception
    ) -> HandlerException:
        """Park a message and be done with it, or keep it until it can be parked."""
        park = self._manner.park
        if park is not None:
            try:
                await park(msg.raw_message, f"{type(error).__name__}: {error}")
            except TransientError as away:
                self._complain(msg, away)
                return _later(msg)
        return RejectMessage()

    def _complain(self, msg: StreamMessage[Any], error: Exception) -> None:
        self._metrics.undecodable.inc()
        logger("ingress").warning(
            "message_failed",
            subject=msg.raw_message.subject,
            error=f"{type(error).__name__}: {error}",
        )


def _later(msg: StreamMessage[Any]) -> NackMessage:
    return NackMessage(delay=again_seconds(_tries(msg)))


def _tries(msg: StreamMessage[Any]) -> int:
    tries: int = msg.raw_message.metadata.num_delivered
    return tries


def is_stored(message: StreamMessage[Any]) -> bool:
    """Tell whether a stream waits for an acknowledgement."""
    reply: str = message.raw_message.reply or ""
    return reply.startswith(_JETSTREAM)


def again_seconds(tries: int) -> float:
    """Wait twice as long after every try, up to a limit."""
    doublings = min(max(tries - 1, 0), 30)
    return min(_AGAIN_MOST_SECONDS, _AGAIN_FIRST_SECONDS * 2.0**doublings)
