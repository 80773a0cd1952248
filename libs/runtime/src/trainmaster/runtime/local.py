"""What the stack of one machine is made of: its servers, users, secrets and nodes."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from trainmaster.core.ids import NodeKey
from trainmaster.runtime.bus import Bus, BusAddress, connect
from trainmaster.runtime.clock import pause
from trainmaster.runtime.embedded import (
    EmbeddedNats,
    EmbeddedPostgres,
    NatsUser,
    ServerFailedError,
    Started,
    Stopped,
    Watch,
    kept_password,
)
from trainmaster.runtime.embedded.files import private_directory, write_private
from trainmaster.runtime.permissions import (
    Permissions,
    agent_name,
    agent_permissions,
    service_permissions,
    source_name,
    source_permissions,
)
from trainmaster.runtime.provision import (
    Role,
    declare_roles,
    declare_streams,
    deploy_folder,
    read_grants,
    read_streams,
)
from trainmaster.runtime.settings import Settings
from trainmaster.runtime.sources import (
    FILE,
    Sources,
    credentials_of,
)
from trainmaster.runtime.telemetry import logger

POOL: Final = "local"
PROVISIONER: Final = "provisioner"
_SOURCES_LOOK_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What `tm up` was told."""

    data: Path
    nodes: int = 1
    fake_accelerators: int = 0

    @property
    def credentials(self) -> Path:
        """The file the command line reads: address and token, 0600."""
        return self.data / "credentials.json"

    @property
    def sources(self) -> Path:
        """The file that says which other systems may publish."""
        return self.data / FILE

    @property
    def node_keys(self) -> tuple[NodeKey, ...]:
        """The nodes of this machine."""
        return tuple(NodeKey(POOL, f"n{i + 1}") for i in range(self.nodes))


class Stack:
    """The embedded servers with their users, and what the services are told."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.grants = read_grants(deploy_folder())
        self._secrets = private_directory(options.data) / "secrets"
        private_directory(self._secrets)
        self._sources = Sources(path=options.sources)
        self.nats = EmbeddedNats(data=options.data, users=self._users())
        self.postgres = EmbeddedPostgres(data=options.data)
        self._nats_turn = asyncio.Lock()
        self._sources_behind = False

    def secret(self, name: str) -> str:
        """Return the password kept under a name, made when first asked for."""
        return kept_password(self._secrets / name)

    async def start(self) -> None:
        """Start or adopt both servers, then declare streams and roles."""
        await asyncio.gather(self.nats.start(), self.postgres.start())
        await asyncio.gather(self._declare_streams(), self._declare_roles())
        self._write_source_credentials()

    async def follow_sources(self) -> None:
        """Let sources in, and out, as their file changes; until cancelled."""
        while True:
            await pause(_SOURCES_LOOK_SECONDS)
            await self.refresh_sources()

    async def refresh_sources(self) -> None:
        """Do what their file says, if it is another than before."""
        if not (self._sources.changed() or self._sources_behind):
            return
        self._sources_behind = True
        try:
            async with self._nats_turn:
                await self.nats.reload(self._users())
        except ServerFailedError as error:
            logger("sources").warning("sources_not_let_in", error=str(error))
            return  # it died, or refuses; it is asked again
        self._write_source_credentials()
        self._sources_behind = False

    def watches(self) -> tuple[Watch, Watch]:
        """Make what brings a server back that dies, in a stack that goes on."""

        async def restart_nats() -> Started:
            async with self._nats_turn:
                return await self.nats.start(move=False)

        async def restart_postgres() -> Started:
            return await self.postgres.start(move=False)

        nats, sql = self.nats, self.postgres
        return (
            Watch(name="nats-server", pid=lambda: nats.pid, restart=restart_nats),
            Watch(name="postgresql", pid=lambda: sql.pid, restart=restart_postgres),
        )

    async def stop(self) -> bool:
        """Stop both servers; False when none was running."""
        ends = await asyncio.gather(self.nats.stop(), self.postgres.stop())
        return any(end is not Stopped.NOT_RUNNING for end in ends)

    def settings(self, service: str, *, port: int) -> Settings:
        """Tell one service where the servers are and who it is."""
        role = self._role(service)
        return Settings.model_validate(
            {
                "nats_url": self.nats.url,
                "nats_user": service,
                "nats_password": self.secret(f"nats-{service}"),
                "database_url": self.postgres.dsn(
                    user=role.name, password=role.password, database="trainmaster"
                ),
                "http_port": port,
                "admin_token": self.secret("admin-token"),
                "storage_root": str(self.options.data / "storage"),
                "sources_file": str(self.options.sources),
            }
        )

    def agent_settings(self, node: NodeKey) -> dict[str, Any]:
        """Tell one agent the same; keys are fields of the agent's settings."""
        name = agent_name(node)
        root = private_directory(self.options.data / "nodes") / node.node
        return {
            "pool": node.pool,
            "node": node.node,
            "root": private_directory(root),
            "fake_accelerators": self.options.fake_accelerators,
            "nats_url": self.nats.url,
            "nats_user": name,
            "nats_password": self.secret(f"nats-{name}"),
        }

    async def provisioner(self) -> Bus:
        """Connect as the only user who may declare streams."""
        address = BusAddress(
            url=self.nats.url,
            user=PROVISIONER,
            password=self.secret(f"nats-{PROVISIONER}"),
        )
        return await connect(address, name=PROVISIONER)

    def _write_source_credentials(self) -> None:
        """Say in one private file per source how it connects; drop what is no more."""
        folder, names = self.options.data / "sources", tuple(self._sources.grants())
        if not names and not folder.is_dir():
            return
        private_directory(folder)
        for name in names:
            user = source_name(name)
            text = credentials_of(
                name,
                user=user,
                password=self.secret(f"nats-{user}"),
                url=self.nats.url,
            )
            write_private(folder / f"{name}.json", text)
        for path in folder.glob("*.json"):
            if path.stem not in names:
                path.unlink()

    def _role(self, service: str) -> Role:
        return Role(service=service, password=self.secret(f"postgres-{service}"))

    def _users(self) -> tuple[NatsUser, ...]:
        provisioner = Permissions(
            publish=("$JS.API.>",), subscribe=(f"_INBOX_{PROVISIONER}.>",)
        )
        rights = {
            PROVISIONER: provisioner,
            **{n: service_permissions(n, grant) for n, grant in self.grants.items()},
            **{agent_name(k): agent_permissions(k) for k in self.options.node_keys},
            **{source_name(n): source_permissions(n) for n in self._sources.grants()},
        }
        return tuple(
            NatsUser(
                name=name,
                password=self.secret(f"nats-{name}"),
                publish=right.publish,
                subscribe=right.subscribe,
                allow_responses=right.answers,
            )
            for name, right in rights.items()
        )

    async def _declare_streams(self) -> None:
        bus = await self.provisioner()
        try:
            await declare_streams(bus, read_streams(deploy_folder()))
        finally:
            await bus.close()

    async def _declare_roles(self) -> None:
        roles = {name: self._role(name) for name in self.grants}
        await declare_roles(self.postgres.superuser_dsn(), roles)
