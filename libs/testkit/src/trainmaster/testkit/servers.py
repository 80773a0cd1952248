"""One service on a real bus and a real database, with exactly its own rights."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncpg
from pydantic import SecretStr

from trainmaster.core import subjects
from trainmaster.core.decision import Write
from trainmaster.core.envelope import Entry
from trainmaster.core.events import Event, Transition
from trainmaster.core.ids import Key, NodeKey
from trainmaster.runtime.bus import Bus, BusAddress, connect
from trainmaster.runtime.clock import pause
from trainmaster.runtime.embedded import EmbeddedNats, EmbeddedPostgres, NatsUser
from trainmaster.runtime.heads import Head, Heads
from trainmaster.runtime.log import Log
from trainmaster.runtime.permissions import (
    agent_name,
    agent_permissions,
    service_permissions,
)
from trainmaster.runtime.provision import (
    Role,
    declare_roles,
    declare_streams,
    deploy_folder,
    read_grants,
    read_streams,
)
from trainmaster.runtime.service import Build, Env, Running, open_env
from trainmaster.runtime.settings import Settings

WITHIN_SECONDS = 20.0
TOKEN = "the-token"  # noqa: S105 - of servers that live for one test
_PASSWORD = "p"  # noqa: S105 - as above
_ADMIN = NatsUser(name="admin", password=_PASSWORD, publish=(">",), subscribe=(">",))


async def eventually(
    condition: Callable[[], bool], *, within_seconds: float = WITHIN_SECONDS
) -> None:
    """Wait until something is true, or fail."""
    deadline = time.monotonic() + within_seconds
    while not condition():
        _in_time(deadline, "it did not come true")
        await pause(0.002)


def _in_time(deadline: float, what: str) -> None:
    if time.monotonic() > deadline:
        raise AssertionError(f"{what} in time")


def nats_users(nodes: tuple[NodeKey, ...]) -> tuple[NatsUser, ...]:
    """Give every service and every node's agent a user with exactly its rights."""
    services = {
        name: service_permissions(name, grant)
        for name, grant in read_grants(deploy_folder()).items()
    }
    agents = {agent_name(node): agent_permissions(node) for node in nodes}
    users = (
        NatsUser(
            name=name,
            password=_PASSWORD,
            publish=may.publish,
            subscribe=may.subscribe,
            allow_responses=may.answers,
        )
        for name, may in {**services, **agents}.items()
    )
    return (_ADMIN, *users)


async def start_database(data: Path) -> EmbeddedPostgres:
    """Start PostgreSQL with a role for every service."""
    postgres = EmbeddedPostgres(data=data)
    await postgres.start()
    roles = {
        name: Role(service=name, password=_PASSWORD)
        for name in read_grants(deploy_folder())
    }
    await declare_roles(postgres.superuser_dsn(), roles)
    return postgres


@dataclass(kw_only=True)
class Stack:
    """The servers, and an administrator's connection to say what others would say."""

    nats: EmbeddedNats
    postgres: EmbeddedPostgres
    admin: Bus
    log: Log

    def settings(self, user: str) -> Settings:
        """Say how a service reaches the servers."""
        role = Role(service=user, password=_PASSWORD)
        dsn = self.postgres.dsn(
            user=role.name, password=_PASSWORD, database="trainmaster"
        )
        return Settings(
            nats_url=self.nats.url,
            nats_user=user,
            nats_password=SecretStr(_PASSWORD),
            database_url=SecretStr(dsn),
            admin_token=SecretStr(TOKEN),
        )

    async def connect(self, user: str) -> Bus:
        """Connect as a service or an agent."""
        address = BusAddress(url=self.nats.url, user=user, password=_PASSWORD)
        return await connect(address, name=user)

    async def say(self, key: Key, event: Event, *, cause: str = "") -> int:
        """Append one event behind whatever the log holds of its key."""
        heads = Heads()
        scope = subjects.scope(event.family, key)
        stream = subjects.STREAM_OF_FAMILY[event.family]
        raw = await self.log.get(stream, {"last_by_subj": scope}) if scope else None
        if raw is not None:
            heads.by_scope[scope] = Head(seq=raw.seq, id=raw.id)
        write = Write(key=key, event=event, cause=cause)
        appended = await self.log.append([(write,)], heads)
        if not appended.whole:
            raise AssertionError(f"{event!r} was not stored: {appended}")
        return max(appended.last.values())

    async def tell(self, key: Key, life: list[Transition]) -> int:
        """Append a life, event by event; returns where the last one is stored."""
        return [await self.say(key, event) for event in life][-1]

    async def entries(self, subject: str, stream: str = subjects.JOBS) -> list[Entry]:
        """Read what is stored on some subjects."""
        found = await self.log.entries(stream, subject)
        return [entry for entry in found if isinstance(entry, Entry)]

    async def heard(
        self, subject: str, kind: type[Event], *, count: int = 1
    ) -> list[Entry]:
        """Wait until so many events of a kind are stored."""
        found: list[Entry] = []
        deadline = time.monotonic() + WITHIN_SECONDS
        while len(found) < count:
            _in_time(deadline, f"only {len(found)} {kind.__name__} came")
            await pause(0.005)
            found = [
                entry
                for entry in await self.entries(subject)
                if isinstance(entry.event, kind)
            ]
        return found

    @asynccontextmanager
    async def running(self, name: str, build: Build) -> AsyncGenerator[Env]:
        """Run one service, loop and all, until the block is left."""
        async with self.opened(name) as env:
            running = Running(env, build(env))
            task = asyncio.create_task(running.run())
            try:
                await eventually(lambda: running.ready or task.done())
                yield env
            finally:
                task.cancel()
                await asyncio.wait([task])

    @asynccontextmanager
    async def opened(self, name: str) -> AsyncGenerator[Env]:
        """Connect as a service, with a projection that holds nothing yet."""
        env = await open_env(name, self.settings(name))
        await self.forget(name)
        try:
            yield env
        finally:
            await env.bus.close()
            await env.database.close()

    async def forget(self, name: str) -> None:
        """Drop a service's rows; those of another test tell of another log."""
        stem = name.replace("-", "_")
        connection = await asyncpg.connect(self.postgres.superuser_dsn("trainmaster"))
        try:
            rows = await connection.fetch(
                "select nspname from pg_namespace where nspname ~ $1",
                f"^{stem}_v[0-9]+$",
            )
            for row in rows:
                await connection.execute(f"drop schema {row['nspname']} cascade")
        finally:
            await connection.close()


@asynccontextmanager
async def stack(
    data: Path, postgres: EmbeddedPostgres, *, nodes: tuple[NodeKey, ...] = ()
) -> AsyncGenerator[Stack]:
    """Start a bus with all streams, empty."""
    nats = EmbeddedNats(data=data, users=nats_users(nodes))
    await nats.start()
    address = BusAddress(url=nats.url, user="admin", password=_PASSWORD)
    admin = await connect(address, name="admin")
    try:
        await declare_streams(admin, read_streams(deploy_folder()))
        log = Log(admin, source="test", epoch=1)
        yield Stack(nats=nats, postgres=postgres, admin=admin, log=log)
    finally:
        await admin.close()
        await nats.kill()
