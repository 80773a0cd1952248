"""One web application for all services of a process: health, metrics, their routes."""

import contextlib
from collections.abc import Sequence
from typing import Any, Protocol

import uvicorn
from fastapi import APIRouter, FastAPI
from fastapi.responses import JSONResponse, PlainTextResponse
from prometheus_client import CollectorRegistry, generate_latest


class Health(Protocol):
    """What is shown of how something is."""

    @property
    def name(self) -> str:
        """Name the service."""
        ...

    @property
    def ready(self) -> bool:
        """Whether it is active and caught up."""
        ...

    @property
    def trouble(self) -> str:
        """What keeps it from that, "" for nothing known."""
        ...


class Shown(Health, Protocol):
    """What the application shows of one service."""

    @property
    def api(self) -> APIRouter | None:
        """Its own routes."""
        ...

    @property
    def registry(self) -> CollectorRegistry:
        """Its metrics."""
        ...


class Server(uvicorn.Server):
    """Uvicorn without its own signal handling: shutdown order is ours."""

    @contextlib.contextmanager
    def capture_signals(self) -> Any:
        """Leave the signals alone."""
        yield

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self.servers[0].sockets[0].getsockname()[1])


def web(running: Sequence[Shown], beside: Sequence[Health] = ()) -> FastAPI:
    """Join health, metrics and the services' own routes into one application.

    The health of what is `beside` them, such as the servers of a laptop, is shown too.
    """
    app = FastAPI(title="Trainmaster", version="1", docs_url="/docs")

    @app.get("/livez", include_in_schema=False)
    async def live() -> PlainTextResponse:
        return PlainTextResponse("ok")

    @app.get("/readyz", include_in_schema=False)
    async def ready() -> JSONResponse:
        shown = (*beside, *running)
        state = {
            each.name: "ready" if each.ready else each.trouble or "catching up"
            for each in shown
        }
        red = any(not each.ready for each in shown)
        return JSONResponse(state, status_code=503 if red else 200)

    @app.get("/metrics", include_in_schema=False)
    async def metrics() -> PlainTextResponse:
        return PlainTextResponse(
            "".join(_labelled(r) for r in running),
            media_type="text/plain; version=0.0.4",
        )

    for each in running:
        if each.api is not None:
            app.include_router(each.api, prefix="/api/v1")
    return app


def _labelled(running: Shown) -> str:
    """Render one registry with a `service` label on every sample."""
    label = f'service="{running.name}"'
    lines: list[str] = []
    for line in generate_latest(running.registry).decode().splitlines():
        name, brace, rest = line.partition("{")
        if line.startswith("#"):
            lines.append(line)
        elif brace:
            lines.append(f"{name}{{{label},{rest}")
        else:
            metric, _, value = line.partition(" ")
            lines.append(f"{metric}{{{label}}} {value}")
    return "\n".join(lines) + "\n"
