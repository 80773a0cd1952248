"""Asking a server, and what comes of a server that does not answer well."""

from collections.abc import Iterator

import pytest
from tests.unit.client.server import Answer, Server, a_problem, a_stream, serving

from trainmaster.client.client import Client, JobFile
from trainmaster.client.credentials import Credentials
from trainmaster.client.errors import (
    ConflictError,
    ForbiddenError,
    InvalidError,
    MissingError,
    NotReadyError,
    ServerError,
)
from trainmaster.core.errors import (
    Fault,
    SpecRejectedError,
    TrainmasterError,
    UnreachableError,
)

pytestmark = pytest.mark.unit

RECEIPT = {"job": "J1", "team": "default", "name": "lm", "seq": 7}
FILE = JobFile(content=b"name: lm", name="träin.yaml", directory="/a b/ü")
NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with Client(Credentials(url=server.url, token="secret")) as client:
        yield client


def test_a_submission_carries_the_file_its_folder_and_a_key(
    server: Server, client: Client
):
    server.answers("POST /api/v1/jobs", Answer(status=201, body=RECEIPT))
    assert client.submit(FILE) == RECEIPT
    [asked] = server.asked
    assert asked.body == b"name: lm"
    assert asked.headers["authorization"] == "Bearer secret"
    assert asked.headers["content-type"] == "application/yaml"
    assert asked.headers["x-source"] == "tr%C3%A4in.yaml"
    assert asked.headers["x-source-directory"] == "/a%20b/%C3%BC"
    assert asked.headers["idempotency-key"]


@pytest.mark.parametrize(
    "first",
    [
        a_problem(503, "it is starting"),
        Answer(status=201, body=RECEIPT, drop=True),
    ],
    ids=["not ready", "answer lost"],
)
def test_a_submission_without_an_answer_is_repeated_with_the_same_key(
    server: Server, client: Client, first: Answer
):
    server.answers("POST /api/v1/jobs", first, Answer(status=200, body=RECEIPT))
    assert client.submit(FILE) == RECEIPT
    assert len(server.asked) == 2
    assert len({asked.headers["idempotency-key"] for asked in server.asked}) == 1


def test_two_submissions_have_different_keys(server: Server, client: Client):
    server.answers("POST /api/v1/jobs", Answer(status=201, body=RECEIPT))
    client.submit(FILE)
    client.submit(FILE)
    client.submit(FILE, key="mine")
    keys = [asked.headers["idempotency-key"] for asked in server.asked]
    assert len(set(keys)) == 3
    assert keys[-1] == "mine"


def test_a_server_that_is_not_there_is_named_with_the_next_step():
    with (
        Client(Credentials(url=NOWHERE, token="")) as client,
        pytest.raises(UnreachableError) as caught,
    ):
        client.submit(FILE)
    assert str(caught.value) == (
        f"trainmaster at {NOWHERE} does not answer; start it with `tm up`"
    )


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, InvalidError),
        (401, ForbiddenError),
        (403, ForbiddenError),
        (404, MissingError),
        (409, ConflictError),
        (413, InvalidError),
        (415, InvalidError),
        (422, InvalidError),
        (500, ServerError),
        (429, NotReadyError),
        (418, ServerError),
    ],
)
def test_a_problem_becomes_an_error_with_its_detail(
    server: Server, client: Client, status: int, kind: type[TrainmasterError]
):
    server.answers("GET /api/v1/jobs/x", a_problem(status, "because"))
    with pytest.raises(kind, match=r"^because$"):
        client.job("x")


def test_faults_keep_their_places(server: Server, client: Client):
    fault = {"field": "nodes", "message": "is wrong", "line": 3, "column": 1}
    server.answers(
        "POST /api/v1/jobs",
        a_problem(422, "...", source="train.yaml", faults=[fault]),
    )
    with pytest.raises(SpecRejectedError) as caught:
        client.submit(FILE)
    assert caught.value.faults == (
        Fault(field="nodes", message="is wrong", line=3, column=1),
    )
    assert str(caught.value).startswith("train.yaml:3:1 is wrong\n")


@pytest.mark.parametrize("body", ["<html>", "[]", '"text"', "{}"])
def test_an_answer_of_somebody_else_is_said_to_be_one(
    server: Server, client: Client, body: str
):
    server.answers("GET /api/v1/nodes", Answer(status=500, body=body, kind="text/html"))
    with pytest.raises(ServerError, match=r"answered 500 .*is it trainmaster\?"):
        client.nodes()


def test_a_reference_is_one_part_of_the_path(server: Server, client: Client):
    server.answers("GET /api/v1/jobs/a%2F..%2Fb", Answer(body={"id": "J1"}))
    assert client.job("a/../b") == {"id": "J1"}


def test_only_what_is_wanted_is_asked_for(server: Server, client: Client):
    server.answers("GET /api/v1/jobs", Answer(body={"jobs": []}))
    client.jobs()
    client.jobs(team="a", state="running", limit=3)
    assert [asked.query for asked in server.asked] == [
        {},
        {"team": "a", "state": "running", "limit": "3"},
    ]


def test_the_server_says_what_time_it_is(server: Server, client: Client):
    server.answers("GET /api/v1/nodes", Answer(body={"nodes": []}))
    assert client.server_time is None
    client.nodes()
    assert client.server_time is not None
    assert client.server_time.tzinfo is not None


def an_event(seq: int, kind: str = "submitted") -> dict[str, object]:
    return {"seq": seq, "time": "2026-01-01T00:00:00Z", "type": kind}


def test_following_goes_on_behind_what_was_read(server: Server, client: Client):
    server.answers(
        "GET /api/v1/jobs/J1/events",
        a_stream([an_event(1), an_event(5)], drop=True),
        a_stream([an_event(6)]),
    )
    seqs = [event["seq"] for event in client.follow_events("J1")]
    assert seqs == [1, 5, 6]
    assert [asked.query["after"] for asked in server.asked] == ["0", "5"]


def test_output_that_comes_again_is_shown_once(server: Server, client: Client):
    def chunk(offset: int, text: str, rank: int = 0) -> dict[str, object]:
        return {"rank": rank, "attempt": 1, "offset": offset, "text": text}

    server.answers(
        "GET /api/v1/jobs/J1/logs",
        a_stream([chunk(0, "a\n"), chunk(2, "\u00fc\n"), chunk(0, "x", 1)], drop=True),
        a_stream([chunk(0, "a\n\u00fc\nb"), chunk(6, "c"), chunk(0, "xy", 1)]),
    )
    seen: dict[int, str] = {}
    for told in client.follow_logs("J1", attempt=1):
        seen[told["rank"]] = seen.get(told["rank"], "") + told["text"]
    assert seen == {0: "a\n\u00fc\nbc", 1: "xy"}
    assert server.asked[0].query == {"attempt": "1", "follow": "true"}
    assert len(server.asked) == 2


def test_following_nothing_is_missing_at_once(server: Server, client: Client):
    server.answers("GET /api/v1/jobs/J1/events", a_problem(404, "no job 'J1'"))
    with pytest.raises(MissingError, match="no job 'J1'"):
        list(client.follow_events("J1"))
    assert len(server.asked) == 1


def test_jobs_are_changed_by_team_and_id(server: Server, client: Client):
    said = {"job": "J1", "team": "t", "changed": True, "seq": 3, "message": ""}
    server.answers("POST /api/v1/jobs/t/J1/cancel", Answer(body=said))
    assert client.change("cancel", "t", "J1", reason="enough") == said
    assert server.asked[0].body == b'{"reason":"enough"}'
