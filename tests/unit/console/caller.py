"""The console as a client sees it: served over real HTTP on a free port."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import uvicorn

from trainmaster.console.app import build
from trainmaster.runtime.service import Running, open_env
from trainmaster.runtime.web import web
from trainmaster.testkit.servers import TOKEN, WITHIN_SECONDS, Stack, eventually


@dataclass(kw_only=True)
class Caller:
    """The console over HTTP, as a client sees it."""

    http: httpx.AsyncClient
    running: Running

    async def get(self, path: str, **params: Any) -> Any:
        answer = await self.http.get(path, params=params)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def until(
        self, path: str, true: Callable[[Any], object], **params: Any
    ) -> Any:
        """Ask until the answer is as wanted."""
        deadline = time.monotonic() + WITHIN_SECONDS
        while True:
            answer = await self.http.get(path, params=params)
            if answer.status_code == 200 and true(answer.json()):
                return answer.json()
            assert time.monotonic() < deadline, answer.text

    @asynccontextmanager
    async def stream(
        self, path: str, **params: Any
    ) -> AsyncGenerator[AsyncIterator[dict[str, Any]]]:
        async with self.http.stream("GET", path, params=params) as answer:
            assert answer.status_code == 200
            yield _data(answer)


async def _data(answer: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    async for line in answer.aiter_lines():
        if line == "event: end":
            return
        if line.startswith("data:"):
            yield json.loads(line.removeprefix("data:"))


class _Server(uvicorn.Server):
    """Uvicorn that leaves the test's signals alone."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


@asynccontextmanager
async def console(world: Stack, *, token: str = TOKEN) -> AsyncGenerator[Caller]:
    """Run the console and serve it on a free port."""
    env = await open_env("console", world.settings("console"))
    running = Running(env, build(env))
    config = uvicorn.Config(
        web([running]),
        port=0,
        log_level="warning",
        lifespan="off",
        timeout_graceful_shutdown=1,
    )
    server = _Server(config)
    tasks = [asyncio.create_task(running.run()), asyncio.create_task(server.serve())]
    try:
        await eventually(lambda: server.started and running.ready)
        port = server.servers[0].sockets[0].getsockname()[1]
        async with httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{port}/api/v1",
            headers={"authorization": f"Bearer {token}"},
            timeout=WITHIN_SECONDS,
            trust_env=False,
        ) as http:
            yield Caller(http=http, running=running)
    finally:
        server.should_exit = True
        await asyncio.wait([tasks[1]], timeout=5)
        tasks[0].cancel()
        await asyncio.wait(tasks)
        await env.bus.close()
        await env.database.close()
