"""Looking at what happened and what was printed, and following both."""

import json
import re
import threading
from typing import Any

import pytest
from tests.unit.cli.terminal import Terminal, interrupted
from tests.unit.client.server import Answer, Server, a_problem, a_stream

from trainmaster.cli.exits import Exit
from trainmaster.cli.follow import follow_logs
from trainmaster.client.client import Client
from trainmaster.client.credentials import Credentials
from trainmaster.client.errors import NotReadyError
from trainmaster.client.wire import Manner

pytestmark = pytest.mark.unit

JOB: dict[str, Any] = {
    "id": "J1",
    "team": "default",
    "name": "char-lm",
    "state": "running",
    "spec": {"nodes": 2, "ranks_per_node": 1},
}
EVENTS: list[dict[str, Any]] = [
    {
        "seq": 3,
        "time": "2026-01-01T00:00:00Z",
        "type": "submitted",
        "attempt": 0,
        "summary": "by ada",
        "event": {},
    },
    {
        "seq": 5,
        "time": "2026-01-01T00:00:01.5Z",
        "type": "attempt_placed",
        "attempt": 1,
        "summary": "on n1, n2",
        "event": {},
    },
]


def test_events_are_told_one_a_line(terminal: Terminal, server: Server):
    server.answers("GET /api/v1/jobs/J1", Answer(body=JOB))
    server.answers("GET /api/v1/jobs/J1/events", Answer(body=EVENTS))
    lines = terminal.tm("events", "J1").out.splitlines()
    assert [
        re.sub(r"^\d\d:\d\d:\d\d\.\d{3} +", "", line).split() for line in lines
    ] == [
        ["submitted", "by", "ada"],
        ["attempt_placed", "#1", "on", "n1,", "n2"],
    ]
    assert json.loads(terminal.tm("events", "J1", "-o", "json").out) == EVENTS


def test_followed_events_end_with_the_job(terminal: Terminal, server: Server):
    server.answers("GET /api/v1/jobs/lm", Answer(body=JOB))
    over = EVENTS[1] | {"seq": 9, "type": "failed"}
    later = EVENTS[1] | {"seq": 10, "type": "archived"}
    server.answers("GET /api/v1/jobs/J1/events", a_stream([*EVENTS, over, later]))
    ended = terminal.tm("events", "lm", "-f", "-o", "json")
    told = [json.loads(line)["seq"] for line in ended.out.splitlines()]
    assert (ended.code, told) == (Exit.OK, [3, 5, 9])


def test_output_is_shown_as_it_is(terminal: Terminal, server: Server):
    server.answers("GET /api/v1/jobs/J1", Answer(body=JOB))
    server.answers("GET /api/v1/jobs/J1/logs", Answer(body="a\nb", kind="text/plain"))
    ended = terminal.tm("logs", "J1", "--attempt", "2", "--rank", "0")
    assert ended.out == "a\nb"
    assert server.asked[1].query == {"attempt": "2", "rank": "0"}


def test_followed_output_of_one_rank_has_no_prefix(terminal: Terminal, server: Server):
    alone = JOB | {"spec": {"nodes": 1, "ranks_per_node": 1}}
    server.answers("GET /api/v1/jobs/J1", *(Answer(body=j) for j in (JOB, JOB, alone)))
    chunks = [
        {"rank": 0, "attempt": 1, "offset": 0, "text": "on"},
        {"rank": 0, "attempt": 1, "offset": 2, "text": "e\ntwo\n"},
    ]
    server.answers("GET /api/v1/jobs/J1/logs", a_stream(chunks))
    assert terminal.tm("logs", "J1", "-f", "--rank", "0").out == "one\ntwo\n"
    assert terminal.tm("logs", "J1", "-f").out == "[0] one\n[0] two\n"
    assert terminal.tm("logs", "J1", "-f").out == "one\ntwo\n"


def test_ctrl_c_while_following_detaches(terminal: Terminal, server: Server):
    hold = threading.Event()
    server.answers("GET /api/v1/jobs/J1", Answer(body=JOB))
    chunk = {"rank": 0, "attempt": 1, "offset": 0, "text": "one\nhalf"}
    server.answers("GET /api/v1/jobs/J1/logs", a_stream([chunk], hold=hold))
    process = terminal.tm_process("logs", "-f", "J1")
    assert process.stdout is not None
    first = process.stdout.readline()
    ended = interrupted(process, once=lambda: True)
    hold.set()
    assert (first, ended.out) == ("[0] one\n", "[0] half\n")
    assert ended.code == Exit.OK
    assert "Detached; job J1 goes on. Come back: tm logs -f J1." in ended.err


def test_leaving_events_tells_how_to_come_back_to_events(
    terminal: Terminal, server: Server
):
    hold = threading.Event()
    server.answers("GET /api/v1/jobs/J1", Answer(body=JOB))
    server.answers("GET /api/v1/jobs/J1/events", a_stream(EVENTS, hold=hold))
    process = terminal.tm_process("events", "-f", "J1")
    assert process.stdout is not None
    process.stdout.readline()
    ended = interrupted(process, once=lambda: True)
    hold.set()
    assert "goes on. Come back: tm events -f J1." in ended.err


def test_a_server_that_stopped_for_good_ends_a_follower_with_a_word(
    server: Server, capsys: pytest.CaptureFixture[str]
):
    server.answers("GET /api/v1/jobs/J1", Answer(body=JOB))
    chunk = {"rank": 0, "attempt": 1, "offset": 0, "text": "one\n"}
    stopping = a_problem(503, "it is stopping")
    server.answers("GET /api/v1/jobs/J1/logs", a_stream([chunk], ends=False), stopping)
    credentials = Credentials(url=server.url, token="x")
    with (
        Client(credentials, manner=Manner(away_seconds=0.5)) as client,
        pytest.raises(NotReadyError),
    ):
        follow_logs(client, "J1", attempt=None, rank=None)
    seen = capsys.readouterr()
    assert seen.out == "[0] one\n"
    assert "job J1 goes on without it. Come back once it runs: tm logs -f J1" in (
        seen.err
    )
