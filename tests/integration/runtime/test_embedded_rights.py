"""Who may say and hear what at the embedded nats-server, with the real program."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError

from trainmaster.runtime.embedded import EmbeddedNats, NatsUser

pytestmark = pytest.mark.integration

DEADLINE_SECONDS = 10
ADMIN = NatsUser(name="admin", password="a", publish=(">",), subscribe=(">",))
SPEAKER = NatsUser(
    name="speaker", password="s", publish=("tm.say.>",), subscribe=("_INBOX.>",)
)
SILENT = NatsUser(name="silent", password="n")
ANSWERER = NatsUser(
    name="answerer", password="r", subscribe=("tm.ask.>",), allow_responses=True
)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[EmbeddedNats]:
    server = EmbeddedNats(data=tmp_path, users=(ADMIN, SPEAKER, SILENT, ANSWERER))
    await server.start()
    yield server
    await server.kill()


class Peer(Client):
    """A connection that remembers what the server complained about."""

    def __init__(self) -> None:
        super().__init__()
        self.complaints: asyncio.Queue[str] = asyncio.Queue()

    async def complain(self, error: Exception) -> None:
        self.complaints.put_nowait(str(error))

    async def complaint(self) -> str:
        async with asyncio.timeout(DEADLINE_SECONDS):
            return await self.complaints.get()

    async def hear(
        self, subject: str, tell: Callable[[Msg], Awaitable[None]] | None = None
    ) -> Subscription:
        return await self.subscribe(subject, cb=tell)  # pyright: ignore[reportUnknownMemberType] - Future[Unknown]


@asynccontextmanager
async def connected(server: EmbeddedNats, user: NatsUser) -> AsyncGenerator[Peer]:
    peer = Peer()
    try:
        await peer.connect(
            server.url,
            user=user.name,
            password=user.password,
            error_cb=peer.complain,
            allow_reconnect=False,
        )
        yield peer
    finally:
        await peer.close()


async def test_what_a_user_may_not_say_is_refused(server: EmbeddedNats):
    async with connected(server, SPEAKER) as peer:
        await peer.publish("tm.say.hello", b"")
        await peer.publish("tm.job.team.job.submitted", b"")
        complaint = await peer.complaint()
    assert 'violation for publish to "tm.job.team.job.submitted"' in complaint


async def test_a_user_without_subjects_says_and_hears_nothing(server: EmbeddedNats):
    async with connected(server, SILENT) as peer:
        await peer.publish("x", b"")
        assert "violation for publish" in await peer.complaint()
        await peer.hear("x")
        assert "violation for subscription" in await peer.complaint()


async def test_who_is_asked_may_answer_and_nothing_else(server: EmbeddedNats):
    async def answer(message: Msg) -> None:
        await message.respond(b"here")

    async with connected(server, ANSWERER) as asked, connected(server, ADMIN) as peer:
        await asked.hear("tm.ask.node", answer)
        for _ in range(2):  # the first ping may overtake the subscription
            await asked.flush()
        reply = await peer.request("tm.ask.node", b"", timeout=DEADLINE_SECONDS)
        assert reply.data == b"here"
        await asked.publish("tm.ask.node", b"")
        assert "violation for publish" in await asked.complaint()


async def test_a_wrong_password_is_refused(server: EmbeddedNats):
    guessing = replace(ADMIN, password="guess")
    with pytest.raises(NatsError, match="Authorization"):
        async with connected(server, guessing):
            pass


async def test_a_reload_gives_rights_to_who_is_connected(server: EmbeddedNats):
    async with connected(server, SPEAKER) as peer:
        await peer.publish("tm.new", b"")
        assert "violation" in await peer.complaint()
        wider = replace(SPEAKER, publish=("tm.say.>", "tm.new"), subscribe=("tm.new",))
        await server.reload([ADMIN, wider])
        heard = await peer.hear("tm.new")
        await peer.publish("tm.new", b"heard")
        assert (await heard.next_msg(timeout=DEADLINE_SECONDS)).data == b"heard"
