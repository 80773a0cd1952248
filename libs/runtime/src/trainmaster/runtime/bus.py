"""The connection to NATS: one per service, its rights included.

A publish that the server forbids only shows as a time-out on the wire; here it fails at
once with the subject, because the server's complaint is matched to who waits.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

import nats
import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from typing_extensions import override

from trainmaster.core.errors import NotAllowedError, UnreachableError
from trainmaster.runtime.telemetry import logger

_CONNECT_SECONDS: Final = 5.0
_RECONNECT_SECONDS: Final = 0.1
_CLOSE_SECONDS: Final = 2.0
_PENDING_BYTES: Final = 64 * 2**20
_VIOLATION: Final = "permissions violation for publish to"


@dataclass(frozen=True, slots=True, kw_only=True)
class BusAddress:
    """Where NATS is and who we are there."""

    url: str
    user: str
    password: str


class _Client(Client):
    """nats-py without looking at every character of every header, twice.

    With a dozen headers per event that was most of the cost of reading and of writing
    the log. What is written here is made by `core.envelope`, whose names and values
    hold no line breaks. Should nats-py rename these methods, its own slower ones are
    used again.
    """

    @override
    async def _send_publish(
        self,
        subject: str,
        reply: str,
        payload: bytes,
        payload_size: int,
        headers: dict[str, str] | None,
    ) -> None:
        if not headers:
            await super()._send_publish(subject, reply, payload, payload_size, headers)
            return
        lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        head = f"NATS/1.0\r\n{lines}\r\n".encode()
        total = len(head) + len(payload)
        line = f"HPUB {subject} {reply} {len(head)} {total}\r\n".encode()
        self.stats["out_msgs"] += 1
        self.stats["out_bytes"] += payload_size
        await self._send_command(b"".join((line, head, payload, b"\r\n")))
        if self._flush_queue is not None and self._flush_queue.empty():
            await self._flush_pending()

    def forget_unsent(self) -> None:
        """Keep nothing for a server that is not there: closing would trip over it."""
        if not self.is_connected:
            self._pending = []
            self._pending_data_size = 0

    @staticmethod
    @override
    def _parse_header_lines(raw: bytes) -> dict[str, str]:
        lines = raw.decode("utf-8", "replace").split("\r\n")
        try:
            return dict([line.split(": ", 1) for line in lines if line])
        except ValueError:  # written by another client: no space, or no colon at all
            pairs = (line.partition(":") for line in lines)
            return {name: value.strip() for name, colon, value in pairs if colon}


class Bus:
    """A NATS connection that reports outages and refused publishes."""

    def __init__(self, client: _Client, address: BusAddress) -> None:
        self.client = client
        self.address = address
        self._waiting: dict[str, set[asyncio.Future[Msg]]] = {}
        self._answers_lost: set[asyncio.Future[Msg]] = set()
        self._reconnected: list[Callable[[], None]] = []
        self._disconnected: list[Callable[[], None]] = []

    @property
    def connected(self) -> bool:
        """Whether the server can be reached now."""
        return self.client.is_connected

    def on_reconnect(self, call: Callable[[], None]) -> None:
        """Be told when the connection is back."""
        self._reconnected.append(call)

    def on_disconnect(self, call: Callable[[], None]) -> None:
        """Be told when the connection is gone."""
        self._disconnected.append(call)

    def forget(self, call: Callable[[], None]) -> None:
        """Be told no more."""
        for calls in (self._reconnected, self._disconnected):
            if call in calls:
                calls.remove(call)

    async def request(
        self,
        subject: str,
        body: bytes,
        *,
        seconds: float,
        headers: dict[str, str] | None = None,
    ) -> Msg:
        """Ask and wait. Raises NotAllowedError or UnreachableError."""
        task = asyncio.ensure_future(
            self.client.request(subject, body, timeout=seconds, headers=headers)
        )
        task.add_done_callback(_seen)
        waiting = self._waiting.setdefault(subject.lower(), set())
        waiting.add(task)
        try:
            # `await task` would lose a cancel that comes together with the answer.
            await asyncio.wait({task})
            return task.result()
        except asyncio.CancelledError as error:
            current = asyncio.current_task()
            if task in waiting or (current is not None and current.cancelling()):
                task.cancel()
                raise
            if task in self._answers_lost:
                raise UnreachableError(
                    what=f"NATS ({subject})",
                    address=self.address.url,
                    hint="the connection broke before the answer came",
                ) from error
            raise NotAllowedError(
                action=f"publish to {subject} as {self.address.user}",
                hint="see deploy/services.yaml for who publishes what",
            ) from error
        except (nats.errors.TimeoutError, nats.errors.NoRespondersError) as error:
            raise UnreachableError(
                what=f"NATS ({subject})",
                address=self.address.url,
                hint="is the server up? `tm up` starts one",
            ) from error
        except (nats.errors.ConnectionClosedError, nats.errors.Error) as error:
            raise UnreachableError(
                what="NATS", address=self.address.url, hint=str(error)
            ) from error
        finally:
            waiting.discard(task)
            self._answers_lost.discard(task)
            if not waiting:
                self._waiting.pop(subject.lower(), None)

    async def subscribe(
        self, subject: str, call: Callable[[Msg], Awaitable[None]] | None = None
    ) -> Subscription:
        """Listen to a core subject without a bound on what is pending."""
        return await self.client.subscribe(  # pyright: ignore[reportUnknownMemberType]
            subject, cb=call, pending_msgs_limit=-1, pending_bytes_limit=-1
        )

    async def ask_api(self, subject: str, body: dict[str, Any]) -> dict[str, Any]:
        """Call the JetStream API; the answer as it comes, `error` included."""
        answer = await self.request(
            f"$JS.API.{subject}", json.dumps(body).encode(), seconds=_CONNECT_SECONDS
        )
        decoded: dict[str, Any] = json.loads(answer.data)
        return decoded

    def refused(self, error: Exception) -> None:
        """Fail whoever waits for the publish that the server complains about."""
        text = str(error).lower()
        if _VIOLATION not in text:
            return
        subject = text.rsplit(" ", 1)[-1].strip("'\"")
        for task in tuple(self._waiting.get(subject, ())):
            self._waiting[subject].discard(task)
            task.cancel()

    def back(self) -> None:
        """Tell everybody that the connection is back."""
        for call in tuple(self._reconnected):
            call()

    def gone(self) -> None:
        """Tell everybody that the connection is gone, and who waits for an answer.

        None comes any more, so nobody need wait until the time is over.
        """
        for waiting in self._waiting.values():
            for task in tuple(waiting):
                waiting.discard(task)
                self._answers_lost.add(task)
                task.cancel()
        for call in tuple(self._disconnected):
            call()

    async def close(self) -> None:
        """Send what is pending, if somebody is there to hear it, then close.

        The connection may be half-way gone: what it then raises is no news.
        """
        if self.client.is_closed:
            return
        self.client.forget_unsent()
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self.client.close()
        except (OSError, RuntimeError, nats.errors.Error) as error:
            logger(self.address.user).info("bus_closed_hard", error=str(error))


def _seen(task: "asyncio.Future[Msg]") -> None:
    """Look at how a request ended, also when whoever asked has gone."""
    if not task.cancelled():
        task.exception()


async def connect(address: BusAddress, *, name: str) -> Bus:
    """Connect, and reconnect for ever once connected. Raises UnreachableError."""
    client = _Client()
    bus = Bus(client, address)

    async def on_error(error: Exception) -> None:
        bus.refused(error)

    async def on_disconnected() -> None:
        bus.gone()

    async def on_reconnected() -> None:
        bus.back()

    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            await client.connect(
                address.url,
                user=address.user,
                password=address.password,
                name=name,
                inbox_prefix=f"_INBOX_{address.user}",
                error_cb=on_error,
                disconnected_cb=on_disconnected,
                reconnected_cb=on_reconnected,
                max_reconnect_attempts=-1,
                reconnect_time_wait=_RECONNECT_SECONDS,  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
                pending_size=_PENDING_BYTES,
                allow_reconnect=True,
            )
    except (OSError, TimeoutError, nats.errors.Error) as error:
        raise UnreachableError(
            what="NATS",
            address=address.url,
            hint=f"{type(error).__name__}; is it running? `tm up` starts one",
        ) from error
    return bus
