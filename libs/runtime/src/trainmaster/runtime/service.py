"""The only runner: one service in its own process, or all of them in one.

Each service has its own NATS user, database role, registry and loop either way; an
error restarts one loop and nothing else.
"""

import asyncio
import contextlib
import gc
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import uvicorn
from fastapi import APIRouter
from prometheus_client import CollectorRegistry

from trainmaster.core.decision import Policy
from trainmaster.core.errors import (
    LeadershipLostError,
    LogLostError,
    TrainmasterError,
    TransientError,
)
from trainmaster.runtime.bus import Bus, connect
from trainmaster.runtime.clock import pause
from trainmaster.runtime.database import Database
from trainmaster.runtime.facts import Facts
from trainmaster.runtime.log import Log
from trainmaster.runtime.loop import Effect, Loop, Parts
from trainmaster.runtime.settings import Settings
from trainmaster.runtime.tables import Tables
from trainmaster.runtime.telemetry import Metrics, configure_logs, logger
from trainmaster.runtime.web import web

_BACKOFF_SECONDS: Final = (0.05, 0.2, 0.5, 1.0, 2.0)
_LOST_SECONDS: Final = 5.0
_LOOP: Final = "loop"
_BEAT_SECONDS: Final = 2.0
_HANDOVER_SECONDS: Final = 1.0


@dataclass(slots=True, kw_only=True)
class Env:
    """What a service is given: its own connections, never global."""

    name: str
    settings: Settings
    bus: Bus
    log: Log
    database: Database
    facts: Facts = field(default_factory=Facts)
    metrics: Metrics = field(default_factory=Metrics)
    loop: Loop[Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What a service is made of; `tasks` run beside the loop, leading or not."""

    policy: Policy[Any]
    tables: Tables[Any]
    effects: tuple[Effect[Any], ...] = ()
    api: APIRouter | None = None
    tasks: tuple[Callable[[], Awaitable[None]], ...] = ()


Build = Callable[[Env], Service]


class Running:
    """One service inside a process: its loop restarts, its tasks restart."""

    def __init__(self, env: Env, service: Service) -> None:
        self.env = env
        self.service = service
        self._troubles = {_LOOP: "starting"}
        self._log = logger(env.name)

    @property
    def name(self) -> str:
        """Name the service."""
        return self.env.name

    @property
    def api(self) -> APIRouter | None:
        """Its own routes."""
        return self.service.api

    @property
    def registry(self) -> CollectorRegistry:
        """Its metrics."""
        return self.env.metrics.registry

    @property
    def trouble(self) -> str:
        """What keeps this service from being ready, "" for nothing known."""
        return "; ".join(self._troubles.values())

    @property
    def ready(self) -> bool:
        """Active and caught up, or a healthy standby."""
        loop = self.env.loop
        return not self.trouble and loop is not None and loop.healthy

    async def run(self) -> None:
        """Keep the loop and the tasks going until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._keep(_LOOP, self._one_loop))
            for number, task in enumerate((self._beat, *self.service.tasks)):
                group.create_task(self._keep(f"task {number}", task))

    async def _one_loop(self) -> None:
        env, service = self.env, self.service
        loop = Loop(
            Parts(
                policy=service.policy,
                tables=service.tables,
                log=env.log,
                database=env.database,
                facts=env.facts,
                metrics=env.metrics,
                epoch=env.settings.epoch,
                effects=service.effects,
            )
        )
        env.loop = loop
        self._troubles.pop(_LOOP, None)
        await loop.run()

    async def _beat(self) -> None:
        """Say that this service is there, while it is active and caught up."""
        while True:
            if self.ready and self.env.bus.connected:
                await self.env.bus.client.publish(
                    f"tm.status.service.{self.env.name}", b"{}"
                )
            await pause(_BEAT_SECONDS)

    async def _keep(self, name: str, task: Callable[[], Awaitable[None]]) -> None:
        """Run something again and again: leaving it is the one way to recover."""
        failures = 0
        while True:
            try:
                await task()
            except* LogLostError as group:
                self._troubles[name] = _first(group)
                self._log.critical("log_lost", error=_first(group))
                await pause(_LOST_SECONDS)
            except* LeadershipLostError as group:
                self._log.info("leadership_lost", error=_first(group))
            except* TransientError as group:
                self._troubles[name] = _first(group)
                self._log.warning("loop_left", error=_first(group))
            except* Exception:  # noqa: BLE001 one recovery path: reload
                self._troubles[name] = "an unexpected error; see the log"
                self._log.exception("loop_crashed")
            # An error on the way out hides the cancellation that caused it.
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                raise asyncio.CancelledError
            self.env.metrics.restarts.inc()
            await pause(_BACKOFF_SECONDS[min(failures, len(_BACKOFF_SECONDS) - 1)])
            self._troubles.pop(name, None)
            failures = 0 if self.ready else failures + 1


def _first(error: BaseException) -> str:
    """Name the first error of a group of groups."""
    if isinstance(error, BaseExceptionGroup):
        return _first(error.exceptions[0])
    return str(error)


async def open_env(name: str, settings: Settings) -> Env:
    """Connect one service."""
    bus = await connect(settings.bus, name=name)
    return Env(
        name=name,
        settings=settings,
        bus=bus,
        log=Log(bus, source=name, epoch=settings.epoch),
        database=Database(dsn=settings.database_url.get_secret_value(), service=name),
    )


async def serve(
    builds: Mapping[str, Build],
    settings: Mapping[str, Settings],
    *,
    ready: Callable[[Sequence[Running], int], Awaitable[None]] | None = None,
    beside: Sequence[Callable[[], Awaitable[None]]] = (),
) -> None:
    """Run services until SIGTERM or SIGINT; `ready` is called when all are.

    `beside` runs other things in this process, such as the agents of a laptop.
    """
    collect_garbage_seldom()
    envs = await asyncio.gather(*(open_env(name, settings[name]) for name in builds))
    running = [Running(env, builds[env.name](env)) for env in envs]
    first = settings[next(iter(builds))]
    server = _Server(
        uvicorn.Config(
            web(running),
            host=first.http_host,
            port=first.http_port,
            log_level="warning",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            lifespan="off",
            timeout_graceful_shutdown=1,
        )
    )
    stop = asyncio.Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signum, stop.set)
    tasks = [asyncio.create_task(r.run(), name=r.env.name) for r in running]
    tasks.append(asyncio.create_task(server.serve(), name="http"))
    tasks += [asyncio.create_task(_awaited(each)) for each in beside]
    if ready is not None:
        tasks.append(asyncio.create_task(_announce(ready, running, server)))
    waiter = asyncio.create_task(stop.wait())
    try:
        await _first_failure_or(waiter, tasks)
    finally:
        server.should_exit = True
        await _cancel(tasks)
        for env in envs:
            await env.bus.close()
            await env.database.close()


def collect_garbage_seldom() -> None:
    """Spare the collector from walking all jobs after every few hundred events.

    What events leave behind is freed by counting references; only rare cycles wait.
    """
    gc.set_threshold(50_000, 20, 100)


class _Server(uvicorn.Server):
    """Uvicorn without its own signal handling: shutdown order is ours."""

    @contextlib.contextmanager
    def capture_signals(self) -> Any:
        yield

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self.servers[0].sockets[0].getsockname()[1])


async def _announce(
    ready: Callable[[Sequence[Running], int], Awaitable[None]],
    running: Sequence[Running],
    server: _Server,
) -> None:
    while not (server.started and all(r.ready for r in running)):
        await pause(0.01)
    await ready(running, server.port)


async def _first_failure_or(
    stop: asyncio.Task[Any], tasks: Sequence[asyncio.Task[None]]
) -> None:
    pending: set[asyncio.Task[Any]] = {stop, *tasks}
    while stop in pending:
        done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            if task is not stop and (error := task.exception()) is not None:
                raise error


async def _awaited(call: Callable[[], Awaitable[None]]) -> None:
    await call()


async def _cancel(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks, timeout=_HANDOVER_SECONDS)


def main(name: str, build: Build) -> None:
    """Run one service in this process, told by the environment."""
    configure_logs()
    import uvloop  # noqa: PLC0415

    try:
        uvloop.run(serve({name: build}, {name: Settings()}))
    except TrainmasterError as error:
        raise SystemExit(f"{name}: {error}") from error
