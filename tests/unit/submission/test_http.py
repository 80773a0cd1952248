"""Submission over HTTP, with the real policy and no servers."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from pydantic import SecretStr
from tests.unit.submission.world import FakeKeys, World, a_desk

from trainmaster.core.ids import JobKey
from trainmaster.runtime.auth import Gate
from trainmaster.runtime.auth_routes import Guard
from trainmaster.submission.http import routes
from trainmaster.submission.settings import TEXT_BYTES_MAX

pytestmark = pytest.mark.unit

TOKEN = "secret"
YAML = {"content-type": "application/yaml", "x-source-directory": "/home/ada"}
JOB = "name: lm\ncommand: python train.py\n"


def application(world: World, *, token: str = TOKEN, trouble: str = "") -> FastAPI:
    app = FastAPI()
    desk = a_desk(world, FakeKeys(), trouble=trouble)
    guard = Guard(gate=Gate(admin_token=SecretStr(token)))
    app.include_router(routes(desk, guard=guard), prefix="/api/v1")
    return app


@asynccontextmanager
async def calling(world: World, **settings: Any) -> AsyncGenerator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(application(world, **settings))
    headers = {"authorization": f"Bearer {TOKEN}"}
    async with (
        world.running(),
        httpx.AsyncClient(
            transport=transport, base_url="http://tm/api/v1", headers=headers
        ) as client,
    ):
        yield client


async def post(client: httpx.AsyncClient, text: str = JOB, **headers: str) -> Any:
    return await client.post(
        "/jobs",
        content=text,
        headers=YAML | {k.replace("_", "-"): v for k, v in headers.items()},
    )


async def test_a_job_file_becomes_a_job():
    world = World()
    async with calling(world) as client:
        answer = await post(client)
    [job] = world.submissions()
    assert answer.status_code == 201
    assert answer.json() == {"job": job, "team": "default", "name": "lm", "seq": 3}
    taken = world.state.jobs[JobKey("default", job)]
    assert taken.spec.work_directory == "/home/ada"


async def test_json_is_taken_as_well():
    body = json.dumps({"name": "lm", "command": ["x"], "work_directory": "/w"})
    async with calling(World()) as client:
        answer = await post(
            client, body, content_type="application/json; charset=utf-8"
        )
    assert answer.status_code == 201


async def test_a_name_in_the_query_wins():
    async with calling(World()) as client:
        answer = await client.post("/jobs?name=mine", content=JOB, headers=YAML)
    assert answer.json()["name"] == "mine"


async def test_the_same_key_is_201_once_and_200_ever_after():
    world = World()
    async with calling(world) as client:
        answers = [await post(client, idempotency_key="k") for _ in range(3)]
        renamed = await post(client, idempotency_key="k", x_source="other.yaml")
    assert [answer.status_code for answer in answers] == [201, 200, 200]
    assert len({answer.text for answer in [*answers, renamed]}) == 1
    assert len(world.submissions()) == 1


async def test_the_same_key_at_once_makes_one_job():
    world = World()
    async with calling(world) as client:
        answers = await asyncio.gather(
            *(post(client, idempotency_key="k") for _ in range(20))
        )
    assert len({answer.json()["job"] for answer in answers}) == 1
    assert len(world.submissions()) == 1


@pytest.mark.parametrize(
    "other",
    [{"text": f"{JOB}nodes: 2\n"}, {"x_source_directory": "/home/bob"}],
)
async def test_another_request_with_the_key_is_a_conflict(other: dict[str, str]):
    async with calling(World()) as client:
        await post(client, idempotency_key="k")
        answer = await post(client, idempotency_key="k", **other)
    assert answer.status_code == 409
    assert answer.headers["content-type"] == "application/problem+json"
    assert "take a new one" in answer.json()["detail"]


@pytest.mark.parametrize("key", ["", "two words", "k" * 201, "\u00e9"])
async def test_a_key_must_be_printable_and_short(key: str):
    async with calling(World()) as client:
        answer = await client.post(
            "/jobs",
            content=JOB,
            headers=httpx.Headers(YAML | {"idempotency-key": key}, encoding="utf-8"),
        )
    assert answer.status_code == 400


async def test_a_wrong_file_is_told_with_every_place():
    world = World()
    async with calling(world) as client:
        answer = await post(
            client, f"{JOB}noeds: 2\nhold: yes\n", x_source="a%20b.yaml"
        )
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json()
    assert told["source"] == "a b.yaml"
    assert told["status"] == 422
    assert {"type", "title", "detail"} <= set(told)
    assert told["faults"] == [
        {
            "field": "noeds",
            "message": "unknown field `noeds`. Did you mean `nodes`?",
            "line": 3,
            "column": 1,
        },
        {
            "field": "hold",
            "message": "`hold` must be `true` or `false`, not `yes`. "
            "Did you mean `true`?",
            "line": 4,
            "column": 1,
        },
    ]
    assert told["detail"].endswith("Nothing was submitted.")
    assert world.submissions() == []


async def test_what_is_not_utf8_is_told_with_its_place():
    async with calling(World()) as client:
        answer = await client.post("/jobs", content=b"name: lm\nx: \xff", headers=YAML)
    assert answer.status_code == 422
    [fault] = answer.json()["faults"]
    assert (fault["line"], fault["column"]) == (2, 4)
    assert "0xff" in fault["message"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content-type": "text/html"}, 415),
        ({"content-type": ""}, 415),
        ({"x-source-directory": "relative/path"}, 400),
        ({"x-source-directory": "/a%00b"}, 400),
    ],
)
async def test_a_wrong_header_is_refused(headers: dict[str, str], status: int):
    async with calling(World()) as client:
        answer = await client.post("/jobs", content=JOB, headers=YAML | headers)
    assert answer.status_code == status
    assert answer.json()["detail"]


async def test_a_body_without_end_is_cut_off():
    sent = 0

    async def endless() -> AsyncGenerator[bytes]:
        nonlocal sent
        while True:
            sent += 1
            yield b"#" * 1024

    async with calling(World()) as client:
        answer = await client.post("/jobs", content=endless(), headers=YAML)
    assert answer.status_code == 413
    assert sent <= TEXT_BYTES_MAX // 1024 + 2


@pytest.mark.parametrize("path", ["/jobs", "/jobs/validate", "/jobs/default/j/cancel"])
@pytest.mark.parametrize("authorization", ["", "Bearer wrong", f"Basic {TOKEN}", TOKEN])
async def test_nobody_comes_in_without_the_token(path: str, authorization: str):
    world = World()
    async with calling(world) as client:
        client.headers["authorization"] = authorization
        answer = await client.post(path, content=JOB, headers=YAML)
    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/problem+json"
    assert world.submissions() == []


async def test_without_a_token_set_nobody_comes_in():
    async with calling(World(), token="") as client:
        client.headers["authorization"] = "Bearer "
        answer = await post(client)
    assert answer.status_code in {401, 403}


async def test_a_service_that_is_not_ready_is_503_with_the_reason():
    async with calling(World(), trouble="it is starting") as client:
        answer = await post(client)
    assert answer.status_code == 503
    assert "it is starting" in answer.json()["detail"]
    assert "retry-after" in answer.headers


async def test_validating_tells_what_would_be_submitted():
    world = World()
    async with calling(world) as client:
        answer = await client.post("/jobs/validate", content=JOB, headers=YAML)
        wrong = await client.post("/jobs/validate", content="name: 1", headers=YAML)
    assert answer.json()["spec"]["command"] == ["python", "train.py"]
    assert wrong.status_code == 422
    assert world.submissions() == []


async def test_a_job_is_held_released_moved_and_cancelled():
    async with calling(World()) as client:
        job = (await post(client)).json()["job"]
        said = [
            await client.post(f"/jobs/default/{job}/{verb}", json=body)
            for verb, body in (
                ("hold", {"reason": "wait"}),
                ("hold", None),
                ("release", None),
                ("priority", {"priority": 7}),
                ("cancel", None),
                ("cancel", {"reason": "enough"}),
            )
        ]
    assert [answer.status_code for answer in said] == [200] * 6
    assert [answer.json()["changed"] for answer in said] == [
        True,
        False,
        True,
        True,
        True,
        False,
    ]
    assert said[1].json()["message"] == "it is held"


async def test_a_change_of_nothing_is_404_and_a_late_one_409():
    world = World()
    async with calling(world) as client:
        missing = await client.post("/jobs/default/none/cancel")
        job = (await post(client)).json()["job"]
        await client.post(f"/jobs/default/{job}/cancel")
        late = await client.post(f"/jobs/default/{job}/release")
        wrong = await client.post(
            f"/jobs/default/{job}/priority", json={"priority": 1e9}
        )
    assert missing.status_code == 404
    assert "`tm list`" in missing.json()["detail"]
    assert late.json()["message"] == "it is not held"
    assert wrong.status_code in {200, 422}


def test_the_routes_are_documented():
    document = application(World()).openapi()
    assert set(document["paths"]) >= {
        "/api/v1/job-file.schema.json",
        "/api/v1/jobs",
        "/api/v1/jobs/validate",
        "/api/v1/jobs/{team}/{job}/cancel",
        "/api/v1/jobs/{team}/{job}/hold",
        "/api/v1/jobs/{team}/{job}/release",
        "/api/v1/jobs/{team}/{job}/priority",
    }
    submit = document["paths"]["/api/v1/jobs"]["post"]
    assert set(submit["requestBody"]["content"]) == {
        "application/yaml",
        "application/json",
    }
