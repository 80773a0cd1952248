"""Every route of submission says what it is, and every role is held to the table."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import product
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from tests.unit.runtime.gates import ADMIN_TOKEN, House, all_routes, bearer
from tests.unit.submission.world import FakeKeys, World, a_desk

from trainmaster.core.access import TokenIssued
from trainmaster.core.events import CancelRequested, Submitted
from trainmaster.core.facts import TeamCreated
from trainmaster.core.ids import JobKey, TeamKey
from trainmaster.core.rights import EVERY_TEAM, Action, Grant, Role, may
from trainmaster.core.tokens import digest_of
from trainmaster.runtime.auth_routes import Guard, needs_of
from trainmaster.submission.http import routes

pytestmark = pytest.mark.unit

PUBLIC = {"/job-file.schema.json"}
OWN, OTHER = "vision", "speech"
YAML = {"content-type": "application/yaml", "x-source-directory": "/home/ada"}
JOB = "name: lm\ncommand: python train.py\nteam: {team}\n"
# What to send to each route, {team} being the one that is concerned.
BODIES: dict[str, Any] = {
    "/jobs/{team}/{job}/priority": {"priority": 7},
    "/nodes/{pool}/{node}/{verb}": {"reason": "new disks"},
    "/teams": {"team": "new"},
    "/teams/{team}/quota": {"pool": "local", "accelerators": 8},
    "/pools": {"pool": "big"},
    "/pools/{pool}/change": {"backend": "docker"},
    "/tokens": {"name": "ci", "team": "{team}", "role": "viewer"},
}
IN_PATH = {"job": "none", "pool": "local", "node": "n1", "verb": "drain"}


def guarded() -> list[APIRoute]:
    guard = Guard(gate=House().gate())
    router = routes(a_desk(World(), FakeKeys()), guard=guard)
    return [route for route in all_routes(router) if route.path not in PUBLIC]


ROUTES = guarded()


@pytest.mark.parametrize("route", ROUTES, ids=lambda r: r.path)
def test_every_route_declares_its_action(route: APIRoute):
    assert needs_of(route) is not None


@asynccontextmanager
async def calling(house: House, world: World) -> AsyncGenerator[httpx.AsyncClient]:
    guard = Guard(gate=house.gate(), report=house.report)
    app = FastAPI()
    app.include_router(routes(a_desk(world, FakeKeys()), guard=guard))
    transport = httpx.ASGITransport(app, client=("10.0.0.7", 1))
    async with (
        world.running(),
        httpx.AsyncClient(transport=transport, base_url="http://tm") as client,
    ):
        world.turn()
        for team in (OWN, OTHER):
            world.store(TeamKey(team), TeamCreated())
        yield client


async def ask(
    http: httpx.AsyncClient, route: APIRoute, team: str, secret: str
) -> httpx.Response:
    path = route.path.format(team=team, token_id="0" * 16, **IN_PATH)
    method = min(route.methods or {"GET"})
    if route.path in {"/jobs", "/jobs/validate"}:
        body: dict[str, Any] = {"content": JOB.format(team=team), "headers": YAML}
    else:
        told = BODIES.get(route.path, {})
        filled = {k: team if v == "{team}" else v for k, v in told.items()}
        body = {"json": filled, "headers": {}}
    body["headers"] = body["headers"] | bearer(secret)
    return await http.request(method, path, **body)


@pytest.mark.parametrize("route", ROUTES, ids=lambda r: r.path)
async def test_every_role_gets_from_a_route_what_the_table_says(route: APIRoute):
    needs = needs_of(route)
    assert needs is not None
    house = House()
    async with calling(house, World()) as http:
        for role, held, asked in product(Role, (OWN, EVERY_TEAM), (OWN, OTHER)):
            secret = house.give(f"{role}-{held}", held, role)
            answer = await ask(http, route, asked, secret)
            allowed = may([Grant(held, role)], needs.action, asked)
            if needs.action is Action.TOKEN_REVOKE:  # not there, for whoever may not
                own = role is Role.ADMIN
                assert answer.status_code == (404 if own else 403)
            else:
                assert (answer.status_code != 403) is allowed, (role, held, asked)


async def test_a_change_says_on_the_log_by_whom_and_from_where():
    house, world = House(), World()
    secret = house.give("ci", OWN, "submitter")
    async with calling(house, world) as http:
        [submit] = [route for route in ROUTES if route.path == "/jobs"]
        job = (await ask(http, submit, OWN, secret)).json()["job"]
        path = f"/jobs/{OWN}/{job}/cancel"
        await http.post(path, json={"reason": "enough"}, headers=bearer(secret))
    submitted, cancelled = (
        entry.event for entry in world.entries if entry.key == JobKey(OWN, job)
    )
    assert isinstance(submitted, Submitted)
    assert (submitted.by, submitted.origin) == ("token:ci", "10.0.0.7")
    told = CancelRequested(by="token:ci", origin="10.0.0.7", reason="enough")
    assert cancelled == told


async def test_a_job_of_a_team_of_others_is_refused_before_anything_is_kept():
    house, world, keys = House(), World(), FakeKeys()
    secret = house.give("ci", OWN, "submitter")
    guard = Guard(gate=house.gate(), report=house.report)
    app = FastAPI()
    app.include_router(routes(a_desk(world, keys), guard=guard))
    async with (
        world.running(),
        httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://tm"
        ) as http,
    ):
        headers = YAML | bearer(secret) | {"idempotency-key": "k"}
        text = JOB.format(team=OTHER)
        answer = await http.post("/jobs", content=text, headers=headers)
    assert answer.status_code == 403
    assert "submitter or operator or admin on team `speech`" in answer.json()["detail"]
    assert (world.submissions(), keys.rows) == ([], {})
    [(refusal, team)] = house.refused
    assert (refusal.action, team) == ("job.submit", OTHER)


async def test_a_secret_is_told_once_and_only_its_digest_is_kept():
    house, world = House(), World()
    body = {"name": "ci", "team": OWN, "role": "submitter", "expires_in_seconds": 60}
    async with calling(house, world) as http:
        answer = await http.post("/tokens", json=body, headers=bearer(ADMIN_TOKEN))
        again = await http.post("/tokens", json=body, headers=bearer(ADMIN_TOKEN))
    given = answer.json()
    assert answer.status_code == 201
    assert answer.headers["cache-control"] == "no-store"
    assert given["token"].startswith("tm_")
    assert again.status_code == 409
    [issued] = [e.event for e in world.entries if isinstance(e.event, TokenIssued)]
    assert issued.digest == digest_of(given["token"])
    assert issued.digest.startswith(given["id"])
    assert given["token"] not in str(world.entries)


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/tokens", {"name": "a b", "team": OWN, "role": "viewer"}, "body.name"),
        ("/tokens", {"name": "ci", "team": OWN, "role": "owner"}, "body.role"),
        ("/tokens", {"name": "ci", "team": "a.b", "role": "viewer"}, "body.team"),
        ("/teams", {"team": "x" * 65}, "body.team"),
        ("/teams", {"team": "x", "perent": "default"}, "body.perent"),
        ("/pools", {"pool": "x", "backend": "ray"}, "body.backend"),
        (f"/teams/{OWN}/pause", {"until": "tomorrow"}, "body.until"),
    ],
)
async def test_a_wrong_field_is_named(path: str, body: dict[str, Any], field: str):
    async with calling(House(), World()) as http:
        answer = await http.post(path, json=body, headers=bearer(ADMIN_TOKEN))
    assert answer.status_code == 422
    assert field in answer.json()["detail"]


async def test_teams_and_pools_are_made_paused_and_bounded():
    world = World()
    async with calling(House(), world) as http:
        http.headers.update(bearer(ADMIN_TOKEN))
        answers = [
            await http.post("/teams", json={"team": "new", "parent": OWN}),
            await http.post("/teams", json={"team": "new", "parent": OWN}),
            await http.post("/teams/new/pause"),
            await http.post("/teams/new/resume"),
            await http.post(
                "/teams/new/quota", json={"pool": "local", "accelerators": 8}
            ),
            await http.post("/pools", json={"pool": "big", "backend": "slurm"}),
            await http.post("/pools/big/change", json={"backend": "docker"}),
        ]
        gone = await http.post("/teams/none/pause")
        wrong = await http.post("/pools/big/change", json={"port_last": 2000})
    assert [answer.json()["changed"] for answer in answers] == [
        True,
        False,
        True,
        True,
        True,
        True,
        True,
    ]
    assert gone.status_code == 404
    assert "`tm teams list`" in gone.json()["detail"]
    assert wrong.status_code == 409
