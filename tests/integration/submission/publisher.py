"""Another system, as the examples are: it knows its credentials and the contract."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg

from trainmaster.core import ingress_subjects
from trainmaster.core.envelope import PACKAGE
from trainmaster.core.ingress import KINDS, RequestAnswered

WITHIN_SECONDS = 20.0


@dataclass(kw_only=True)
class Publisher:
    """One connected source; what it was answered is kept by request."""

    source: str
    client: Client
    answers: list[RequestAnswered] = field(default_factory=list[RequestAnswered])
    complaints: list[str] = field(default_factory=list[str])
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    async def say(self, kind: str, id_: str, /, **data: Any) -> int:
        """Publish in binary mode; returns where it is stored."""
        headers = attributes(kind, id_)
        body = json.dumps(data).encode()
        return await self.publish(
            ingress_subjects.said(self.source, kind), body, headers
        )

    async def say_structured(self, kind: str, id_: str, /, **data: Any) -> int:
        """Publish the same in structured mode."""
        event = {
            "specversion": "1.0",
            "id": id_,
            "source": "/ci/42",
            "type": f"{PACKAGE}.{KINDS[kind].__name__}",
            "data": data,
        }
        headers = {"content-type": "application/cloudevents+json; charset=utf-8"}
        subject = ingress_subjects.said(self.source, kind)
        return await self.publish(subject, json.dumps(event).encode(), headers)

    async def publish(
        self, subject: str, body: bytes, headers: Mapping[str, str]
    ) -> int:
        """Store anything."""
        stored = await self.client.request(
            subject, body, headers=dict(headers), timeout=WITHIN_SECONDS
        )
        return int(json.loads(stored.data)["seq"])

    async def told(self, request: str, *, times: int = 1) -> RequestAnswered:
        """Wait until something was answered so often; returns the last answer."""
        async with asyncio.timeout(WITHIN_SECONDS):
            while len(found := self.all_told(request)) < times:
                self._news.clear()
                await self._news.wait()
        return found[-1]

    def all_told(self, request: str) -> list[RequestAnswered]:
        """List what was answered to one id."""
        return [answer for answer in self.answers if answer.request == request]

    async def ask_again(self, token: str) -> RequestAnswered:
        """Read an answer that came while nobody listened."""
        subject = ingress_subjects.reply(self.source, token)
        message = await self.client.request(
            f"$JS.API.DIRECT.GET.REPLIES.{subject}", b"", timeout=WITHIN_SECONDS
        )
        return RequestAnswered.from_json(message.data)

    async def hear(self, message: Msg) -> None:
        """Take an answer."""
        self.answers.append(RequestAnswered.from_json(message.data))
        self._news.set()

    async def complain(self, error: Exception) -> None:
        """Take a complaint of the server."""
        self.complaints.append(str(error))
        self._news.set()

    async def complaint(self) -> str:
        """Wait for the server's complaint."""
        async with asyncio.timeout(WITHIN_SECONDS):
            while not self.complaints:
                self._news.clear()
                await self._news.wait()
        return self.complaints.pop(0)


def attributes(kind: str, id_: str) -> dict[str, str]:
    """Write the CloudEvents attributes of one event."""
    return {
        "ce-specversion": "1.0",
        "ce-id": id_,
        "ce-source": "/ci/42",
        "ce-type": f"{PACKAGE}.{KINDS[kind].__name__}",
        "content-type": "application/json",
    }


@asynccontextmanager
async def publisher(credentials: Path) -> AsyncGenerator[Publisher]:
    """Connect as a source, with nothing but its file."""
    told = json.loads(await asyncio.to_thread(credentials.read_text))
    made = Publisher(source=told["source"], client=Client())
    try:
        await made.client.connect(
            told["url"],
            user=told["user"],
            password=told["password"],
            inbox_prefix=told["inbox_prefix"],
            error_cb=made.complain,
            allow_reconnect=False,
        )
        everything = ingress_subjects.reply(told["source"], ">")
        await made.client.subscribe(everything, cb=made.hear)  # pyright: ignore[reportUnknownMemberType]
        await made.client.flush()
        yield made
    finally:
        await made.client.close()
