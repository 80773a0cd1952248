"""Other systems on the bus, on the command line."""

import json
from pathlib import Path

import pytest
from tests.unit.cli.terminal import Terminal
from tests.unit.client.server import Answer, Server

from trainmaster.cli.exits import Exit
from trainmaster.core.rights import Grant, Role
from trainmaster.runtime.sources import read_sources

pytestmark = pytest.mark.unit

ROW = {
    "number": 4,
    "at": "2026-01-01T00:00:00+00:00",
    "stream": "INGRESS",
    "seq": 9,
    "subject": "tm.in.ci.job_requested",
    "reason": "the body is not JSON",
    "bytes": 2,
}


def test_what_the_command_writes_the_stack_reads(terminal: Terminal, tmp_path: Path):
    added = terminal.tm("sources", "add", "ci")
    assert str(tmp_path / "sources" / "ci.json") in added.err
    terminal.tm("sources", "add", "dcgm", "--team", "*", "--role", "operator")
    assert read_sources(tmp_path / "sources.json") == {
        "ci": Grant("default", Role.SUBMITTER),
        "dcgm": Grant("*", Role.OPERATOR),
    }
    shown = terminal.tm("sources", "-o", "name")
    assert shown.out == "ci\ndcgm\n"
    terminal.tm("sources", "remove", "ci")
    assert list(read_sources(tmp_path / "sources.json")) == ["dcgm"]
    assert terminal.tm("sources", "remove", "ci").code == Exit.NOT_FOUND


def test_a_name_that_fits_into_no_subject_is_refused(
    terminal: Terminal, tmp_path: Path
):
    ended = terminal.tm("sources", "add", "a.b")
    assert ended.code == Exit.INVALID
    assert "'a.b'" in ended.err
    assert not (tmp_path / "sources.json").exists()


def test_parked_messages_are_listed_shown_and_replayed(
    terminal: Terminal, server: Server
):
    whole = {**ROW, "headers": {"ce-id": "7"}, "text": "{\ufffd", "body_base64": "e/8="}
    server.answers("GET /api/v1/parked", Answer(body={"parked": [ROW]}))
    server.answers("GET /api/v1/parked/4", Answer(body=whole))
    server.answers("POST /api/v1/parked/4/replay", Answer(body=ROW))
    assert "the body is not JSON" in terminal.tm("parked").out
    assert "ce-id: 7\n\n{\ufffd\n" in terminal.tm("parked", "show", "4").out
    assert json.loads(terminal.tm("parked", "show", "4", "-o", "json").out) == whole
    assert "said again" in terminal.tm("parked", "replay", "4").err


def test_with_nothing_parked_it_says_so(terminal: Terminal, server: Server):
    server.answers("GET /api/v1/parked", Answer(body={"parked": []}))
    assert "Nothing is parked" in terminal.tm("parked", "list").err
