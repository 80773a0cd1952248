"""How long a client bears with a server that is away, and what it says meanwhile."""

import threading
import time
from collections.abc import Iterator

import pytest
from tests.unit.client.server import Answer, Server, a_problem, a_stream, serving

from trainmaster.client.client import Client, JobFile
from trainmaster.client.credentials import Credentials
from trainmaster.client.errors import NotReadyError
from trainmaster.client.wire import Manner

pytestmark = pytest.mark.unit

FILE = JobFile(content=b"name: lm")


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with Client(Credentials(url=server.url, token="secret")) as client:
        yield client


def an_event(seq: int, kind: str = "submitted") -> dict[str, object]:
    return {"seq": seq, "time": "2026-01-01T00:00:00Z", "type": kind}


def test_a_server_that_stays_unready_is_given_up_in_time(server: Server):
    server.answers("POST /api/v1/jobs", a_problem(503, "it is starting"))
    said: list[str] = []
    manner = Manner(submit_seconds=1.0, told=said.append)
    began = time.monotonic()
    with (
        Client(Credentials(url=server.url, token=""), manner=manner) as client,
        pytest.raises(NotReadyError) as caught,
    ):
        client.submit(FILE, key="mine")
    assert time.monotonic() - began < 2
    assert f"trainmaster at {server.url} cannot answer now" in str(caught.value)
    assert "it is starting" in str(caught.value)
    assert "`--key mine`, which never makes two of it" in str(caught.value)
    [hint] = said
    assert "Trying again" in hint, "a person is not left without a word"


def test_a_server_that_never_answers_is_given_up_in_time(server: Server):
    hold = threading.Event()
    server.answers("POST /api/v1/jobs", Answer(body=b"", hold=hold, drop=True))
    manner = Manner(submit_seconds=1.5)
    began = time.monotonic()
    with (
        Client(Credentials(url=server.url, token=""), manner=manner) as client,
        pytest.raises(NotReadyError, match="no answer came in time"),
    ):
        client.submit(FILE)
    hold.set()
    assert time.monotonic() - began < 4


def test_a_question_is_asked_again_while_the_server_is_not_ready(
    server: Server, client: Client
):
    nodes = Answer(body={"nodes": []})
    server.answers("GET /api/v1/nodes", a_problem(503, "it is starting"), nodes)
    assert client.nodes() == []


def test_a_stream_that_ends_without_an_end_goes_on(server: Server, client: Client):
    """A server that stops closes its streams politely: that is not the job's end."""
    server.answers(
        "GET /api/v1/jobs/J1/events",
        a_stream([an_event(1)], ends=False),
        a_stream([an_event(2)]),
    )
    assert [event["seq"] for event in client.follow_events("J1")] == [1, 2]
    assert [asked.query["after"] for asked in server.asked] == ["0", "1"]


def test_a_follower_outlives_a_short_absence_and_says_so_once(server: Server):
    server.answers(
        "GET /api/v1/jobs/J1/events",
        a_stream([an_event(1)], drop=True),
        *[a_problem(503, "it is starting")] * 3,
        a_stream([an_event(2)]),
    )
    said: list[str] = []
    credentials = Credentials(url=server.url, token="")
    with Client(credentials, manner=Manner(told=said.append)) as client:
        assert [event["seq"] for event in client.follow_events("J1")] == [1, 2]
    away, back = said
    assert "Trying again for 30 s" in away
    assert back == f"trainmaster at {server.url} is back."


def test_a_follower_gives_up_on_a_server_that_is_gone_for_good(server: Server):
    server.answers(
        "GET /api/v1/jobs/J1/events",
        a_stream([an_event(1)], drop=True),
        a_problem(503, "it is stopping"),
    )
    manner = Manner(away_seconds=1.0)
    seen: list[int] = []
    began = time.monotonic()
    with (
        Client(Credentials(url=server.url, token=""), manner=manner) as client,
        pytest.raises(NotReadyError, match="it is stopping"),
    ):
        seen.extend(event["seq"] for event in client.follow_events("J1"))
    assert seen == [1]
    assert 1 <= time.monotonic() - began < 5


def test_a_stream_that_stays_away_is_given_up(server: Server, client: Client):
    server.answers("GET /api/v1/jobs/J1/logs", a_problem(503, "it is stopping"))
    with pytest.raises(NotReadyError, match="it is stopping"):
        list(client.follow_logs("J1"))
    assert len(server.asked) > 1
