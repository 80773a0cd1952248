"""Who is let in, what they are told when not, and what is kept of it."""

from collections.abc import AsyncGenerator
from datetime import timedelta

import pytest
from tests.unit.runtime.gates import ADMIN_TOKEN, BODY_BYTES, House, bearer

from trainmaster.core.rights import Grant, Role
from trainmaster.core.tokens import digest_of, key_of
from trainmaster.runtime.auth import Caller
from trainmaster.runtime.auth_limits import Limits
from trainmaster.runtime.auth_routes import (
    Guard,
    UndeclaredRouteError,
    guarded_router,
)

pytestmark = pytest.mark.unit


async def test_a_token_lets_its_holder_in_and_names_them():
    house = House()
    secret = house.give("ci", "vision", "submitter")
    async with house.open() as http:
        answer = await http.get("/whoami", headers=bearer(secret))
    assert answer.json() == {"subject": "token:ci", "origin": "10.0.0.7"}


async def test_the_admins_token_needs_no_book():
    house = House(book=None)
    async with house.open() as http:
        answer = await http.get("/whoami", headers=bearer(ADMIN_TOKEN))
    assert answer.json()["subject"] == "admin"


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("", "send `Authorization: Bearer"),
        ("Bearer ", "send `Authorization: Bearer"),
        (f"Basic {ADMIN_TOKEN}", "send `Authorization: Bearer"),
        ("Bearer tm_never", "not known here"),
        ("Bearer a.b.c", "not known here"),
        ("Bearer \xff\xfe", "not known here"),
    ],
)
async def test_a_stranger_is_told_how_to_come_in(header: str, said: str):
    house = House()
    async with house.open() as http:
        raw = [(b"authorization", header.encode("latin-1"))]
        answer = await http.get("/whoami", headers=raw)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.headers["content-type"] == "application/problem+json"
    assert said in answer.json()["detail"]


async def test_an_expired_and_a_revoked_token_open_nothing_and_are_told_apart():
    house = House()
    old = house.give("old", "vision", "admin", days=1)
    gone = house.give("gone", "vision", "admin")
    house.now += timedelta(days=1)
    assert house.book is not None
    key = key_of(digest_of(gone))
    token = house.book[key]
    async with house.open() as http:
        assert (await http.get("/whoami", headers=bearer(gone))).status_code == 200
        object.__setattr__(token, "revoked_at", house.now)
        answers = [await http.get("/whoami", headers=bearer(s)) for s in (old, gone)]
    assert [answer.status_code for answer in answers] == [401, 401]
    assert [(each.by, team) for each, team in house.refused] == [
        ("token:old", "vision"),
        ("token:gone", "vision"),
    ]
    assert "`old` is expired" in answers[0].json()["detail"]
    assert "`gone` is revoked" in answers[1].json()["detail"]


async def test_a_digest_that_only_begins_alike_opens_nothing():
    house = House()
    secret = house.give("ci", "vision", "admin")
    assert house.book is not None
    [token] = house.book.values()
    object.__setattr__(token, "digest", token.digest[:-1] + "x")
    async with house.open() as http:
        answer = await http.get("/whoami", headers=bearer(secret))
    assert answer.status_code == 401


async def test_while_nobody_knows_which_tokens_there_are_the_answer_is_503():
    house = House(book=None)
    async with house.open() as http:
        answer = await http.get("/whoami", headers=bearer("tm_ci"))
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "1"


async def test_a_missing_role_is_named_with_what_to_do():
    house = House()
    secret = house.give("ci", "vision", "viewer")
    async with house.open() as http:
        own = await http.post("/jobs/vision/cancel", headers=bearer(secret))
        other = await http.post("/jobs/speech/cancel", headers=bearer(secret))
    assert [own.status_code, other.status_code] == [403, 403]
    told = own.json()
    assert told["action"] == "job.cancel"
    assert told["roles_needed"] == ["submitter", "operator", "admin"]
    assert told["roles_held"] == ["vision:viewer"]
    assert "tm tokens create NAME --team 'vision' --role submitter" in told["detail"]
    assert "on team `speech`" in other.json()["detail"]


async def test_who_may_is_judged_before_the_body_is_read():
    house = House()
    secret = house.give("ci", "vision", "admin")
    async with house.open() as http:
        answer = await http.post("/pools", content=b"{", headers=bearer(secret))
    assert answer.status_code == 403
    assert "every team (`*`)" in answer.json()["detail"]


async def test_every_refusal_is_reported_with_who_what_and_where():
    house = House()
    secret = house.give("ci", "vision", "viewer")
    async with house.open() as http:
        await http.post("/jobs/vision/cancel", headers=bearer(secret))
        await http.get("/whoami")
        await http.get("/whoami", headers=bearer(secret))
    (forbidden, team), (stranger, no_team) = house.refused
    assert (forbidden.by, forbidden.origin, team) == ("token:ci", "10.0.0.7", "vision")
    assert (forbidden.action, forbidden.status) == ("job.cancel", 403)
    assert forbidden.request == "POST /jobs/vision/cancel"
    assert (stranger.by, stranger.origin, no_team) == ("", "10.0.0.7", "")
    assert secret not in str(house.refused)


async def test_a_body_is_read_only_as_far_as_the_route_allows():
    house = House()
    sent = 0

    async def endless() -> AsyncGenerator[bytes]:
        nonlocal sent
        while True:
            sent += 100
            yield b"x" * 100

    async with house.open() as http:
        told = await http.post(
            "/pools", content=b"x" * (BODY_BYTES + 1), headers=bearer(ADMIN_TOKEN)
        )
        untold = await http.post(
            "/pools", content=endless(), headers=bearer(ADMIN_TOKEN)
        )
        fits = await http.post(
            "/pools", json={"text": "x" * 900}, headers=bearer(ADMIN_TOKEN)
        )
    assert [told.status_code, untold.status_code, fits.status_code] == [413, 413, 200]
    assert told.headers["content-type"] == "application/problem+json"
    assert sent <= BODY_BYTES + 200


async def test_a_token_that_asks_too_often_waits_and_others_do_not():
    house = House()
    busy, other = (house.give(n, "vision", "viewer") for n in ("busy", "other"))
    limits = Limits(per_second=0.001, burst=2)
    async with house.open(limits=limits) as http:
        answers = [await http.get("/whoami", headers=bearer(busy)) for _ in range(3)]
        beside = await http.get("/whoami", headers=bearer(other))
        admin = [
            await http.get("/whoami", headers=bearer(ADMIN_TOKEN)) for _ in range(5)
        ]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert 900 < int(answers[2].headers["retry-after"]) <= 1001
    assert beside.status_code == 200
    assert {answer.status_code for answer in admin} == {200}


async def test_only_a_trusted_proxy_may_say_where_a_request_comes_from():
    forwarded = {"x-forwarded-for": "6.6.6.6, 203.0.113.9"}
    nobody, proxy = frozenset[str](), frozenset({"10.0.0.7"})
    for trusted, origin in ((nobody, "10.0.0.7"), (proxy, "203.0.113.9")):
        async with House().open(trusted_proxies=trusted) as http:
            answer = await http.get("/whoami", headers=bearer(ADMIN_TOKEN) | forwarded)
        assert answer.json()["origin"] == origin


def test_a_route_that_declares_no_action_cannot_be_made():
    router = guarded_router(Guard(gate=House().gate()))
    with pytest.raises(UndeclaredRouteError, match="/open declares no action"):

        @router.get("/open")
        async def open_to_all() -> None: ...


def test_whoever_follows_may_stay_only_as_long_as_they_are_let_in():
    house = House()
    gate = house.gate()
    key = key_of(digest_of(house.give("ci", "vision", "viewer", days=1)))
    grants = (Grant("vision", Role.VIEWER),)
    follower = Caller(subject="token:ci", grants=grants, token=key)
    assert gate.honours(follower)
    house.now += timedelta(days=1)
    assert not gate.honours(follower)
    house.book = None
    assert gate.honours(follower) is None
    assert gate.honours(Caller(subject="admin", grants=grants))


def test_the_only_team_of_a_caller_is_the_one_they_belong_to():
    one = (Grant("vision", Role.VIEWER), Grant("vision", Role.SUBMITTER))
    assert Caller(subject="a", grants=one).only_team == "vision"
    for grants in ((), (*one, Grant("speech", Role.VIEWER)), (Grant("*", Role.ADMIN),)):
        assert Caller(subject="a", grants=grants).only_team == ""


def test_routes_say_in_their_document_that_they_want_a_token():
    house = House()
    document = house.application(house.gate()).openapi()
    schemes = document["components"]["securitySchemes"]
    assert schemes["bearer"]["scheme"] == "bearer"
    for path in document["paths"].values():
        for operation in path.values():
            assert operation["security"] == [{"bearer": []}]
