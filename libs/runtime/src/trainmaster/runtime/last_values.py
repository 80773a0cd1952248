"""Keeping last-value subjects equal to what a state wants of them.

ASSIGN and STATUS hold one message per subject. Wanted and published are compared, so
saying the same again costs nothing, and what is no longer wanted is purged.
"""

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Final, Generic, TypeVar

from trainmaster.core.decision import Changed
from trainmaster.core.errors import UnreachableError
from trainmaster.core.model import Message
from trainmaster.runtime.failpoints import FAILPOINTS
from trainmaster.runtime.log import Log
from trainmaster.runtime.telemetry import logger

S = TypeVar("S")
_SECONDS: Final = 5.0
_OWNERS_AT_ONCE: Final = 64

Wanted = Mapping[str, Message]
"""Messages by subject."""


class LastValues(Generic[S]):
    """Publishes what `wanted(state, owner)` says for every owner that changed."""

    def __init__(
        self,
        log: Log,
        *,
        stream: str,
        owner_of_subject: Callable[[str], str],
        wanted: Callable[[S, str], Wanted],
        owners: Callable[[S, Iterable[Changed] | None], Iterable[str]],
    ) -> None:
        self._log = log
        self._stream = stream
        self._owner_of_subject = owner_of_subject
        self._wanted = wanted
        self._owners = owners
        self._published: dict[str, dict[str, tuple[bytes, int]]] = {}
        self._pending: dict[str, dict[str, bytes]] = {}
        self._wake = asyncio.Event()
        self._loaded = False

    def want(self, state: S, changed: set[Changed] | None) -> None:
        """Note what should be published; `changed` is None for everything."""
        owners = set(self._owners(state, changed))
        if changed is None:
            owners.update(self._published)
            self._loaded = False
        for owner in owners:
            self._pending[owner] = {
                subject: message.to_json()
                for subject, message in self._wanted(state, owner).items()
            }
        if owners or changed is None:
            self._wake.set()

    async def run(self) -> None:
        """Publish and purge until cancelled."""
        await self._wake.wait()
        while True:
            if not self._loaded:
                await self._load()
            self._wake.clear()
            while self._pending:
                await self._bring_about_some()
            await self._wake.wait()

    async def _load(self) -> None:
        """Learn what is there, left by whoever was active before."""
        self._loaded = True
        self._published.clear()
        prefix = self._stream_prefix()
        async for raw in self._log.last_values(self._stream, prefix):
            owner = self._owner_of_subject(raw.subject)
            if owner:
                self._published.setdefault(owner, {})[raw.subject] = raw.body, raw.seq
                self._pending.setdefault(owner, {})

    def _stream_prefix(self) -> str:
        return f"tm.{self._stream.lower()}.>"

    async def _bring_about_some(self) -> None:
        """Serve those who wait longest, at once: each waits for a disk, not for us."""
        owners = list(islice(self._pending, _OWNERS_AT_ONCE))
        async with asyncio.TaskGroup() as tasks:
            for owner in owners:
                values = self._pending.pop(owner)
                tasks.create_task(self._bring_about(owner, values))

    async def _bring_about(self, owner: str, values: dict[str, bytes]) -> None:
        known = self._published.setdefault(owner, {})
        async with asyncio.TaskGroup() as tasks:
            for subject, body in values.items():
                if known.get(subject, (None, 0))[0] != body:
                    tasks.create_task(self._publish(subject, body, known))
            for subject in [s for s in known if s not in values]:
                tasks.create_task(self._purge(subject, known))
        if not known:
            del self._published[owner]

    async def _publish(
        self, subject: str, body: bytes, known: dict[str, tuple[bytes, int]]
    ) -> None:
        seq = known.get(subject, (b"", 0))[1]
        await FAILPOINTS.pass_by(self._point("before_publish"))
        answer = await self._log.bus.request(
            subject,
            body,
            seconds=_SECONDS,
            headers={
                "Nats-Expected-Last-Subject-Sequence": str(seq),
                "Nats-Expected-Stream": self._stream,
            },
        )
        decoded = json.loads(answer.data)
        if "error" in decoded:
            logger(self._stream).warning("last_value_refused", subject=subject)
            raise UnreachableError(
                what=f"{subject} as it was",
                address=self._log.bus.address.url,
                hint="somebody else wrote it; what is there is read again",
            )
        FAILPOINTS.reach(self._point("after_publish"))
        known[subject] = body, int(decoded["seq"])

    async def _purge(self, subject: str, known: dict[str, tuple[bytes, int]]) -> None:
        await FAILPOINTS.pass_by(self._point("before_purge"))
        await self._log.bus.ask_api(f"STREAM.PURGE.{self._stream}", {"filter": subject})
        FAILPOINTS.reach(self._point("after_purge"))
        del known[subject]

    def _point(self, name: str) -> str:
        """Name a failpoint after the service: each is a user of its own."""
        return f"{self._log.bus.address.user}.{name}"
