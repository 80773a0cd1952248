"""What the console shows to whom, against a real bus and a real database."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from fastapi import APIRouter
from fastapi.routing import APIRoute
from tests.unit.console.caller import Caller, console
from tests.unit.runtime.gates import House, all_routes, bearer

from trainmaster.console.api import routes
from trainmaster.console.bell import Bell
from trainmaster.console.live import Outlet, Status
from trainmaster.console.reading import Reading
from trainmaster.core.access import ReadRefused, TokenIssued, TokenRevoked
from trainmaster.core.events import Transition
from trainmaster.core.facts import (
    NodeRegistered,
    PoolCreated,
    QuotaSet,
    TeamCreated,
    TeamPaused,
)
from trainmaster.core.ids import JobId, JobKey, NodeKey, PoolKey, TeamKey
from trainmaster.core.rights import EVERY_TEAM
from trainmaster.core.tokens import digest_of, key_of
from trainmaster.runtime.auth_routes import Guard, needs_of
from trainmaster.testkit.builders import a_history, a_spec
from trainmaster.testkit.servers import Stack

pytestmark = pytest.mark.integration

OWN, OTHER = JobKey("vision", JobId("01JOBA")), JobKey("speech", JobId("01JOBB"))
LIFE = "submitted placed ordered started ended"


async def give(
    world: Stack, name: str, team: str, role: str, *, days: float = 1
) -> str:
    """Give out a token as submission does; returns its secret."""
    secret = f"tm_{name}"
    digest = digest_of(secret)
    end = datetime.now(UTC) + timedelta(days=days)  # noqa: TID251 - a real server's
    issued = TokenIssued(
        digest=digest, name=name, team=team, role=role, expires_at=end, by="admin"
    )
    await world.say(key_of(digest), issued)
    return secret


async def two_jobs(world: Stack, caller: Caller) -> None:
    """Run a job of each team; both are called alike."""
    for key in (OWN, OTHER):
        await world.tell(key, list[Transition](a_history(LIFE, spec=a_spec())))
    await caller.until("/jobs", lambda told: len(told["jobs"]) == 2)
    await caller.until("/jobs/01JOBB", lambda told: told["state"] == "settling")


async def status_once_known(caller: Caller, path: str, secret: str) -> int:
    """Ask until the console has heard of the token."""
    end = time.monotonic() + 10
    while True:
        answer = await caller.http.get(path, headers=bearer(secret))
        if answer.status_code != 401:
            return answer.status_code
        assert time.monotonic() < end, answer.text


def all_of_the_console() -> list[APIRoute]:
    env: Any = None  # nothing is asked of it here
    reading = Reading(env, status=Status(env), outlet=Outlet(env), bell=Bell())
    router: APIRouter = routes(reading, guard=Guard(gate=House().gate()))
    return list(all_routes(router))


@pytest.mark.parametrize("route", all_of_the_console(), ids=lambda r: r.path)
def test_every_route_declares_its_action_and_only_reads(route: APIRoute):
    assert needs_of(route) is not None
    assert (route.methods or set()) <= {"GET", "HEAD"}


async def test_lists_and_reads_are_limited_to_teams_that_may_be_seen(world: Stack):
    async with console(world) as caller:
        await two_jobs(world, caller)
        secret = await give(world, "ci", "vision", "data-reader")
        assert await status_once_known(caller, "/jobs", secret) == 200
        caller.http.headers.update(bearer(secret))
        listed = (await caller.get("/jobs"))["jobs"]
        assert [row["id"] for row in listed] == ["01JOBA"]
        hidden = await caller.http.get("/jobs", params={"team": "speech"})
        assert hidden.status_code == 404
        assert (await caller.get("/jobs/train"))["team"] == "vision"
        assert (await caller.get("/jobs/01JOB"))["id"] == "01JOBA"
        for path in ("", "/events", "/logs"):
            answer = await caller.http.get(f"/jobs/01JOBB{path}")
            assert answer.status_code == 404
            assert answer.json()["candidates"] == []
        after = await caller.http.get("/jobs", params={"after": "01JOBB"})
        assert after.status_code == 404
        nodes = (await caller.get("/nodes"))["nodes"]
        assert "01JOBB" not in str(nodes)
        assert [row["accelerators_used"] for row in nodes] == [2, 2]
        assert [row["jobs"] for row in nodes] == [["01JOBA"], ["01JOBA"]]


async def test_a_viewer_sees_jobs_but_not_what_they_write(world: Stack):
    async with console(world) as caller:
        await two_jobs(world, caller)
        secret = await give(world, "eye", "vision", "viewer")
        assert await status_once_known(caller, "/jobs/train", secret) == 200
        answer = await caller.http.get("/jobs/train/logs", headers=bearer(secret))
        assert answer.status_code == 403
        assert answer.json()["roles_needed"][0] == "data-reader"


async def test_a_revocation_is_heard_within_milliseconds_and_ends_streams(
    world: Stack,
):
    secret = await give(world, "ci", "vision", "viewer")
    async with console(world) as caller:
        await two_jobs(world, caller)
        caller.http.headers.update(bearer(secret))
        async with caller.stream("/jobs/train/events", follow="true") as told:
            for _ in LIFE.split():
                await anext(told)
            await world.say(key_of(digest_of(secret)), TokenRevoked(by="admin"))
            revoked_at = time.monotonic()
            while (await caller.http.get("/jobs")).status_code != 401:
                assert time.monotonic() < revoked_at + 5
            assert time.monotonic() < revoked_at + 1
            detail = (await caller.http.get("/jobs")).json()["detail"]
            assert "token `ci` is revoked" in detail
            reclaimed = a_history(f"{LIFE} reclaimed")[-1]
            await world.say(OWN, reclaimed)
            assert [event async for event in told] == []


async def test_an_expired_token_opens_nothing(world: Stack):
    secret = await give(world, "old", EVERY_TEAM, "admin", days=-1)
    async with console(world) as caller:
        answer = await caller.http.get("/jobs", headers=bearer(secret))
        assert answer.status_code == 401
        assert "expired" in answer.json()["detail"]


async def test_whoever_follows_everything_hears_only_of_their_teams(world: Stack):
    secret = await give(world, "ci", "vision", "viewer")
    async with console(world) as caller:
        assert await status_once_known(caller, "/jobs", secret) == 200
        caller.http.headers.update(bearer(secret))
        async with caller.stream("/events/stream") as told:
            await world.say(OTHER, a_history("submitted")[0])
            await world.say(TeamKey("speech"), TeamCreated())
            await give(world, "theirs", "speech", "admin")
            await world.say(NodeKey("local", "n1"), NodeRegistered())
            await world.say(OWN, a_history("submitted")[0])
            seen = [(await anext(told))["about"] for _ in range(2)]
    assert {"pool": "local", "node": "n1"} in seen
    assert {"team": "vision", "job": "01JOBA"} in seen


async def test_teams_pools_and_tokens_are_listed_to_whom_they_concern(world: Stack):
    await world.say(TeamKey("vision"), TeamCreated(by="admin"))
    await world.say(TeamKey("vision"), QuotaSet(pool="local", accelerators=8))
    await world.say(TeamKey("vision"), TeamPaused(paused=True))
    await world.say(TeamKey("speech"), TeamCreated(by="admin", parent="vision"))
    await world.say(PoolKey("local"), PoolCreated(backend="slurm"))
    boss = await give(world, "boss", "vision", "admin")
    await give(world, "theirs", "speech", "viewer")
    async with console(world) as caller:
        everything = (await caller.get("/teams"))["teams"]
        assert [row["team"] for row in everything] == ["speech", "vision"]
        tokens = (await caller.get("/tokens"))["tokens"]
        assert {row["name"] for row in tokens} == {"boss", "theirs"}
        assert boss not in str(tokens)
        assert digest_of(boss) not in str(tokens)
        caller.http.headers.update(bearer(boss))
        [team] = (await caller.get("/teams"))["teams"]
        assert (team["team"], team["paused"]) == ("vision", True)
        assert team["quotas"] == {"local": {"accelerators": 8, "borrowing": 0}}
        [token] = (await caller.get("/tokens"))["tokens"]
        assert (token["name"], token["role"], token["state"]) == (
            "boss",
            "admin",
            "valid",
        )
        [pool] = (await caller.get("/pools"))["pools"]
        assert (pool["pool"], pool["backend"]) == ("local", "slurm")


async def test_refusals_are_on_the_log_and_shown_to_operators_of_the_team(
    world: Stack,
):
    eye = await give(world, "eye", "vision", "viewer")
    chief = await give(world, "chief", "vision", "operator")
    async with console(world) as caller:
        await two_jobs(world, caller)
        assert await status_once_known(caller, "/jobs", chief) == 200
        stranger = httpx.Headers(bearer("tm_guess"))
        await caller.http.get("/jobs", headers=stranger)
        await caller.http.get("/jobs/train/logs", headers=bearer(eye))
        told = await caller.until("/refusals", lambda a: len(a["refusals"]) >= 2)
        by = {row["by"]: row for row in told["refusals"]}
        assert (by["token:eye"]["team"], by["token:eye"]["status"]) == ("vision", 403)
        assert by["token:eye"]["action"] == "job.read-output"
        assert by["token:eye"]["origin"] == "127.0.0.1"
        assert (by[""]["team"], by[""]["status"]) == ("-", 401)
        caller.http.headers.update(bearer(chief))
        own = (await caller.get("/refusals"))["refusals"]
        assert {row["by"] for row in own} == {"token:eye"}
        answer = await caller.http.get("/refusals", headers=bearer(eye))
        assert answer.status_code == 403
    stored = await world.entries("tm.audit.>", "AUDIT")
    assert {type(entry.event) for entry in stored} == {ReadRefused}
    assert "tm_guess" not in str(stored)
