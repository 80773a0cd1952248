"""A gate with a book of tokens in memory, behind it an application with some routes."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, Any

import httpx
from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from pydantic import BaseModel, SecretStr

from trainmaster.core.access import Refusal
from trainmaster.core.ids import TokenKey
from trainmaster.core.rights import Action
from trainmaster.core.tokens import Token, digest_of, key_of
from trainmaster.runtime.auth import Caller, Gate, needs
from trainmaster.runtime.auth_routes import Guard, guarded_router
from trainmaster.testkit.builders import START

ADMIN_TOKEN = "the-admin's"
BODY_BYTES = 1000


class Body(BaseModel):
    text: str = ""


@dataclass(slots=True)
class House:
    """Tokens, the time, and what was refused."""

    book: dict[TokenKey, Token] | None = field(default_factory=dict[TokenKey, Token])
    now: datetime = START
    refused: list[tuple[Refusal, str]] = field(
        default_factory=list[tuple[Refusal, str]]
    )

    def give(self, name: str, team: str, role: str, *, days: int = 30) -> str:
        """Give out a token; returns its secret."""
        secret = f"tm_{name}"
        digest = digest_of(secret)
        assert self.book is not None
        self.book[key_of(digest)] = Token(
            digest=digest,
            name=name,
            team=team,
            role=role,
            issued_at=self.now,
            expires_at=self.now + timedelta(days=days),
        )
        return secret

    def gate(self, **settings: Any) -> Gate:
        return Gate(
            admin_token=SecretStr(ADMIN_TOKEN),
            book=lambda: self.book,
            now=lambda: self.now,
            **settings,
        )

    def report(self, refusal: Refusal, team: str) -> None:
        self.refused.append((refusal, team))

    def application(self, gate: Gate) -> FastAPI:
        router = guarded_router(Guard(gate=gate, report=self.report))

        @router.get("/whoami")
        async def whoami(
            caller: Annotated[Caller, needs(Action.NODE_VIEW)],
        ) -> dict[str, str]:
            return {"subject": caller.subject, "origin": caller.origin}

        @router.post("/jobs/{team}/cancel")
        async def cancel(
            team: str, caller: Annotated[Caller, needs(Action.JOB_CANCEL)]
        ) -> dict[str, str]:
            return {"team": team, "by": caller.subject}

        @router.post("/pools")
        async def pools(
            body: Body,
            caller: Annotated[
                Caller, needs(Action.POOL_CREATE, body_bytes_max=BODY_BYTES)
            ],
        ) -> dict[str, str]:
            return {"text": body.text, "by": caller.subject}

        app = FastAPI()
        app.include_router(router)
        return app

    @asynccontextmanager
    async def open(
        self, *, client: tuple[str, int] = ("10.0.0.7", 1), **settings: Any
    ) -> AsyncGenerator[httpx.AsyncClient]:
        app = self.application(self.gate(**settings))
        transport = httpx.ASGITransport(app, client=client)
        async with httpx.AsyncClient(transport=transport, base_url="http://tm") as http:
            yield http


def bearer(secret: str) -> dict[str, str]:
    return {"authorization": f"Bearer {secret}"}


def all_routes(router: APIRouter) -> Iterator[APIRoute]:
    """Walk the routes of a router and of those it includes; nothing is passed over."""
    for route in router.routes:
        included = getattr(route, "original_router", None)
        if isinstance(included, APIRouter):
            yield from all_routes(included)
        else:
            assert isinstance(route, APIRoute), f"{route!r} is no route we can judge"
            yield route
