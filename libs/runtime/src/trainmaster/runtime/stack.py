"""The whole of Trainmaster on one machine: servers, services, nodes, one process.

`python -m trainmaster.runtime.stack up|down|remove`. Everything is below one data
directory. A second `up` finds the first. The servers and the ranks outlive a killed
`up`; the next `up` adopts them. `down` stops services and servers; ranks of running
jobs go on under their shims and are found again.
"""

import argparse
import asyncio
import json
import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final

from trainmaster.core import subjects
from trainmaster.core.errors import TrainmasterError, UnreachableError
from trainmaster.core.ids import NodeKey
from trainmaster.runtime.bus import Bus, BusAddress, connect
from trainmaster.runtime.clock import pause
from trainmaster.runtime.embedded import (
    EmbeddedNats,
    EmbeddedPostgres,
    NatsUser,
    kept_password,
)
from trainmaster.runtime.embedded.files import Lock, private_directory, write_private
from trainmaster.runtime.embedded.ports import settle_port
from trainmaster.runtime.log import Log
from trainmaster.runtime.permissions import (
    Permissions,
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
from trainmaster.runtime.service import Build, Running, serve
from trainmaster.runtime.settings import Settings
from trainmaster.runtime.telemetry import configure_logs

POOL: Final = "local"
_PROVISIONER: Final = "provisioner"
_DOWN_SECONDS: Final = 20.0
_NODES_SECONDS: Final = 10.0
Agent = Callable[[dict[str, Any]], Awaitable[None]]


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
    def node_keys(self) -> tuple[NodeKey, ...]:
        """The nodes of this machine."""
        return tuple(NodeKey(POOL, f"n{i + 1}") for i in range(self.nodes))


def default_data() -> Path:
    """Name the data directory: $TM_DATA_DIR, else ~/.trainmaster."""
    told = os.environ.get("TM_DATA_DIR")
    return Path(told) if told else Path.home() / ".trainmaster"


class Stack:
    """The embedded servers with their users, and what the services are told."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.grants = read_grants(deploy_folder())
        self._secrets = private_directory(options.data) / "secrets"
        private_directory(self._secrets)
        self.nats = EmbeddedNats(data=options.data, users=self._users())
        self.postgres = EmbeddedPostgres(data=options.data)

    def secret(self, name: str) -> str:
        """Return the password kept under a name, made when first asked for."""
        return kept_password(self._secrets / name)

    async def start(self) -> None:
        """Start or adopt both servers, then declare streams and roles."""
        await asyncio.gather(self.nats.start(), self.postgres.start())
        await asyncio.gather(self._declare_streams(), self._declare_roles())

    async def stop(self) -> None:
        """Stop both servers."""
        await asyncio.gather(self.nats.stop(), self.postgres.stop())

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
            user=_PROVISIONER,
            password=self.secret(f"nats-{_PROVISIONER}"),
        )
        return await connect(address, name=_PROVISIONER)

    def _role(self, service: str) -> Role:
        return Role(service=service, password=self.secret(f"postgres-{service}"))

    def _users(self) -> tuple[NatsUser, ...]:
        provisioner = Permissions(
            publish=("$JS.API.>",), subscribe=(f"_INBOX_{_PROVISIONER}.>",)
        )
        rights = {
            _PROVISIONER: provisioner,
            **{n: service_permissions(n, grant) for n, grant in self.grants.items()},
            **{agent_name(k): agent_permissions(k) for k in self.options.node_keys},
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


async def up(options: Options) -> int:
    """Run the stack until SIGTERM or SIGINT."""
    began = time.monotonic()
    private_directory(options.data)
    lock = Lock.attempt(options.data / "lock")
    if lock is None:
        print(_found(options))
        return 0
    with lock:
        (options.data / "pid").write_text(f"{os.getpid()}\n")
        stack = Stack(options)
        await stack.start()
        port = settle_port(options.data / "http.port").number
        builds: dict[str, Build] = _entry_points("trainmaster.services")
        run_agent: Agent = _entry_points("trainmaster.agents")["process"]

        async def announce(_running: Sequence[Running], at: int) -> None:
            await _nodes_are_registered(stack)
            _write_credentials(stack, at)
            print(_welcome(stack, at, time.monotonic() - began), flush=True)

        try:
            await serve(
                builds,
                {name: stack.settings(name, port=port) for name in builds},
                ready=announce,
                beside=[
                    lambda node=node: run_agent(stack.agent_settings(node))
                    for node in options.node_keys
                ],
            )
        finally:
            options.credentials.unlink(missing_ok=True)
            await stack.stop()
    print("Stopped. Ranks of running jobs go on; `tm up` finds them again.")
    return 0


async def down(options: Options, *, remove: bool = False) -> int:
    """Stop the stack of a data directory, however it was left; `remove` deletes it."""
    lock = Lock.attempt(options.data / "lock") if options.data.is_dir() else None
    if not options.data.is_dir():
        print(f"Nothing runs below {options.data}.")
        return 0
    if lock is None:
        os.kill(_pid(options), signal.SIGTERM)
        lock = await _wait_for_lock(options)
    with lock:
        stack = Stack(options)
        await stack.stop()
        if remove:
            await stack.postgres.remove()  # some of it may lie outside of the folder
            shutil.rmtree(options.data)
            print(f"Stopped and removed {options.data}.")
            return 0
    print("Stopped. Ranks of running jobs go on; `tm up` finds them again.")
    return 0


async def _wait_for_lock(options: Options) -> Lock:
    end = time.monotonic() + _DOWN_SECONDS
    while time.monotonic() < end:
        lock = Lock.attempt(options.data / "lock")
        if lock is not None:
            return lock
        await pause(0.02)
    raise UnreachableError(
        what="the stack",
        address=f"process {_pid(options)}",
        hint=f"it did not stop within {_DOWN_SECONDS:g} s; end it with `kill -9`",
    )


async def _nodes_are_registered(stack: Stack) -> None:
    """Wait until every node of this machine is known, so that a job can start."""
    bus = await stack.provisioner()
    try:
        log = Log(bus, source=_PROVISIONER, epoch=1)
        end = time.monotonic() + _NODES_SECONDS
        for key in stack.options.node_keys:
            subject = f"tm.node.{key.pool}.{key.node}.registered"
            while not await log.last(subjects.NODES, [subject]):
                if time.monotonic() > end:
                    raise UnreachableError(
                        what=f"the agent of {key.node}",
                        address=stack.nats.url,
                        hint="see what it logged above",
                    )
                await pause(0.02)
    finally:
        await bus.close()


def _write_credentials(stack: Stack, port: int) -> None:
    content = {
        "url": f"http://127.0.0.1:{port}",
        "token": stack.secret("admin-token"),
        "pid": os.getpid(),
        "nats_url": stack.nats.url,
    }
    write_private(stack.options.credentials, json.dumps(content, indent=1) + "\n")


def _pid(options: Options) -> int:
    return int((options.data / "pid").read_text())


def _found(options: Options) -> str:
    try:
        url = json.loads(options.credentials.read_text())["url"]
    except FileNotFoundError:
        return f"Trainmaster is starting or stopping below {options.data} already."
    return f"Trainmaster runs already: {url} (data: {options.data})"


def _welcome(stack: Stack, port: int, seconds: float) -> str:
    options = stack.options
    each = options.fake_accelerators
    return (
        f"Trainmaster is ready: http://127.0.0.1:{port} ({seconds:.2f} s)\n"
        f"  nodes  {', '.join(k.node for k in options.node_keys)}"
        f" on {socket.gethostname()}, {each} accelerators each"
        f"{' (fake)' if each else ''}\n"
        f"  data   {options.data}\n"
        "  next   tm submit FILE, tm list, tm logs -f JOB; Ctrl-C or `tm down` stops"
    )


def _entry_points(group: str) -> dict[str, Any]:
    found = {point.name: point.load() for point in entry_points(group=group)}
    if not found:
        raise UnreachableError(
            what=f"entry points `{group}`",
            address=sys.prefix,
            hint="install the services first: `make setup`",
        )
    return found


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(prog="tm", description=__doc__)
    parser.add_argument("verb", choices=("up", "down", "remove"))
    parser.add_argument("--data-dir", type=Path, default=None)
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--fake-accelerators", type=int, default=0)
    parser.add_argument("--log-level", default="WARNING")
    told = parser.parse_args()
    configure_logs(level=told.log_level)
    options = Options(
        data=(told.data_dir or default_data()).resolve(),
        nodes=told.nodes,
        fake_accelerators=told.fake_accelerators,
    )
    import uvloop  # noqa: PLC0415 only when something is run

    try:
        if told.verb == "up":
            code = uvloop.run(up(options))
        else:
            code = uvloop.run(down(options, remove=told.verb == "remove"))
    except TrainmasterError as error:
        raise SystemExit(f"tm {told.verb}: {error}") from error
    raise SystemExit(code)


if __name__ == "__main__":
    main()
