"""Waiting for files and processes on any event loop, without a thread."""

import asyncio
import os

from trainmaster.launcher.backends.model import Identity
from trainmaster.launcher.backends.proc import open_pidfd


async def readable(fd: int, *, within_seconds: float | None = None) -> bool:
    """Wait until a descriptor can be read; False when the time is over."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def resolve() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_reader(fd, resolve)
    try:
        async with asyncio.timeout(within_seconds):
            await ready
    except TimeoutError:
        return False
    finally:
        loop.remove_reader(fd)
    return True


async def gone(identity: Identity, *, within_seconds: float | None = None) -> bool:
    """Wait until a process, ours or adopted, has ended; False if it has not yet."""
    pidfd = open_pidfd(identity)
    if pidfd is None:
        return True
    try:
        return await readable(pidfd, within_seconds=within_seconds)
    finally:
        os.close(pidfd)


async def all_gone(identities: list[Identity], *, within_seconds: float) -> bool:
    """Wait until all have ended; False if one has not yet."""
    waits = (gone(i, within_seconds=within_seconds) for i in identities)
    return all(await asyncio.gather(*waits))
