"""The only runner: one service in its own process, or all of them in one.

Each service has its own NATS user, database role, registry and loop either way; an
error restarts one loop and nothing else.
"""

import asyncio
import gc
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import asyncpg
import uvicorn
from fastapi import APIRouter
from prometheus_client import CollectorRegistry

from trainmaster.core.decision import Policy
from trainmaster.core.errors import TrainmasterError
from trainmaster.runtime.bus import Bus, connect
from trainmaster.runtime.clock import pause
from trainmaster.runtime.database import Database
from trainmaster.runtime.facts import Facts
from trainmaster.runtime.log import Log
from trainmaster.runtime.loop import Effect, Loop, Parts
from trainmaster.runtime.outages import Outages
from trainmaster.runtime.settings import Settings
from trainmaster.runtime.tables import Tables
from trainmaster.runtime.telemetry import Metrics, configure_logs, logger
from trainmaster.runtime.web import Health, Server, web

_BACKOFF_SECONDS: Final = (0.05, 0.2, 0.5, 1.0, 2.0)
_LOST_SECONDS: Final = 5.0
_LOOP: Final = "loop"
_BEAT_SECONDS: Final = 2.0
_HANDOVER_SECONDS: Final = 1.0
_CLOSE_SECONDS: Final = 3.0


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
    troubles: dict[str, str] = field(default_factory=dict[str, str])
    """What keeps this service from working, by the part that has the trouble."""

    @property
    def trouble(self) -> str:
        """Say what keeps this service from working, "" for nothing known."""
        if not self.bus.connected:
            return f"NATS at {self.bus.address.url} does not answer; it is tried again"
        return "; ".join(self.troubles.values())


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
        env.troubles[_LOOP] = "starting"
        self._outages = Outages(log=logger(env.name), troubles=env.troubles)

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
        return self.env.trouble

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
        watcher = asyncio.create_task(self._note_when_well(loop))
        try:
            await loop.run()
        finally:
            watcher.cancel()

    async def _note_when_well(self, loop: Loop[Any]) -> None:
        await loop.caught_up.wait()
        self._outages.well(_LOOP)

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
            lost = False
            try:
                await task()
            except* Exception as group:  # noqa: BLE001 one recovery path: reload
                lost = self._outages.failed(name, group)
            # An error on the way out hides the cancellation that caused it.
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                raise asyncio.CancelledError
            self.env.metrics.restarts.inc()
            wait = _BACKOFF_SECONDS[min(failures, len(_BACKOFF_SECONDS) - 1)]
            await pause(_LOST_SECONDS if lost else wait)
            if name != _LOOP:  # the loop is well only once it has caught up
                self.env.troubles.pop(name, None)
            failures = 0 if self.ready else failures + 1


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


async def _close(env: Env) -> None:
    """Hang up; a server that is gone does not keep us."""
    try:
        async with asyncio.timeout(_CLOSE_SECONDS):
            await env.bus.close()
            await env.database.close()
    except (OSError, asyncpg.InterfaceError, asyncpg.PostgresError) as error:
        logger(env.name).info("closed_hard", error=str(error))


async def serve(
    builds: Mapping[str, Build],
    settings: Mapping[str, Settings],
    *,
    ready: Callable[[Sequence[Running], int], Awaitable[None]] | None = None,
    beside: Sequence[Callable[[], Awaitable[None]]] = (),
    health: Sequence[Health] = (),
) -> None:
    """Run services until SIGTERM or SIGINT; `ready` is called when all are.

    `beside` runs other things in this process, such as the agents of a laptop, and
    `health` is shown as well.
    """
    collect_garbage_seldom()
    envs = await asyncio.gather(*(open_env(name, settings[name]) for name in builds))
    running = [Running(env, builds[env.name](env)) for env in envs]
    first = settings[next(iter(builds))]
    server = Server(
        uvicorn.Config(
            web(running, health),
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
        await asyncio.gather(*map(_close, envs))


def collect_garbage_seldom() -> None:
    """Spare the collector from walking all jobs after every few hundred events.

    What events leave behind is freed by counting references; only rare cycles wait.
    """
    gc.set_threshold(50_000, 20, 100)


async def _announce(
    ready: Callable[[Sequence[Running], int], Awaitable[None]],
    running: Sequence[Running],
    server: Server,
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
