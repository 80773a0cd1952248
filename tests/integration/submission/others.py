"""Other services, as a test of submission needs them: each with its own rights."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from trainmaster.core import subjects
from trainmaster.core.decision import Write
from trainmaster.core.events import Event
from trainmaster.core.ids import Key
from trainmaster.runtime.bus import Bus, BusAddress, connect
from trainmaster.runtime.heads import Head, Heads
from trainmaster.runtime.log import Log
from trainmaster.runtime.stack import Stack


@asynccontextmanager
async def connected_as(stack: Stack, user: str) -> AsyncGenerator[Bus]:
    """Connect as a service."""
    password = stack.secret(f"nats-{user}")
    address = BusAddress(url=stack.nats.url, user=user, password=password)
    bus = await connect(address, name=user)
    try:
        yield bus
    finally:
        await bus.close()


async def say_behind(stack: Stack, key: Key, event: Event) -> None:
    """Append an event as its publisher, behind whatever the log holds of its key."""
    async with connected_as(stack, type(event).publisher) as bus:
        log, heads = Log(bus, source=type(event).publisher, epoch=1), Heads()
        scope = subjects.scope(event.family, key)
        stream = subjects.STREAM_OF_FAMILY[event.family]
        raw = await log.get(stream, {"last_by_subj": scope})
        if raw is not None:
            heads.by_scope[scope] = Head(seq=raw.seq, id=raw.id)
        appended = await log.append([(Write(key=key, event=event),)], heads)
        assert appended.whole, appended
