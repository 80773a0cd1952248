"""The one way to make a FastStream broker: for what is not the log.

FastStream's own policy drops a message at its first error, and its negative
acknowledgement comes back at once, for ever. Here a message that can never be read is
terminated, and one that failed is tried again later and later. On core subjects there
is nothing to acknowledge: an error is logged, counted and over.

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
from faststream.nats import NatsBroker
from faststream.security import SASLPlaintext
from nats.aio.msg import Msg
from pydantic import ValidationError
from typing_extensions import override

from trainmaster.core.errors import PermanentError, UnreachableError
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
_PERMANENT: Final = (ValidationError, PermanentError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How a broker behaves: what it tells of its connection, what it injects."""

    lost: Callable[[], None] = lambda: None
    back: Callable[[], None] = lambda: None
    injects: bool = False


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
        middlewares=(partial(Acknowledge, metrics=metrics),),
        error_cb=on_error,
        disconnected_cb=on_lost,
        reconnected_cb=on_back,
        apply_types=manner.injects,
        logger=None,
    )


def subscriber_inbox(settings: Settings) -> bytes:
    """Name the inbox prefix that a pulling subscriber must be given."""
    return f"_INBOX_{settings.nats_user}.".encode()


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

    def __init__(self, msg: Any, /, *, context: ContextRepo, metrics: Metrics) -> None:
        super().__init__(msg, context=context)
        self._metrics = metrics

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
        except _PERMANENT as error:
            self._complain(msg, error)
            if is_stored(msg):
                raise RejectMessage from error
        except Exception as error:
            self._complain(msg, error)
            if is_stored(msg):
                tries = msg.raw_message.metadata.num_delivered
                raise NackMessage(delay=again_seconds(tries)) from error

    def _complain(self, msg: StreamMessage[Any], error: Exception) -> None:
        self._metrics.undecodable.inc()
        logger("ingress").warning(
            "message_failed",
            subject=msg.raw_message.subject,
            error=f"{type(error).__name__}: {error}",
        )


def is_stored(message: StreamMessage[Any]) -> bool:
    """Tell whether a stream waits for an acknowledgement."""
    reply: str = message.raw_message.reply or ""
    return reply.startswith(_JETSTREAM)


def again_seconds(tries: int) -> float:
    """Wait twice as long after every try, up to a limit."""
    doublings = min(max(tries - 1, 0), 30)
    return min(_AGAIN_MOST_SECONDS, _AGAIN_FIRST_SECONDS * 2.0**doublings)
