"""Teams, pools and tokens on the command line."""

import json
from datetime import datetime
from typing import Any

import pytest
from tests.unit.cli.terminal import Terminal
from tests.unit.client.server import Answer, Server, a_problem

from trainmaster.cli.exits import Exit, UsageError
from trainmaster.cli.office import seconds_of

pytestmark = pytest.mark.unit

DONE = {"name": "vision", "changed": True, "seq": 7, "message": ""}
ALREADY = {"name": "vision", "changed": False, "seq": 0, "message": "it is paused"}
GIVEN = {
    "id": "0123456789abcdef",
    "name": "ci",
    "team": "vision",
    "role": "submitter",
    "expires_at": "2026-02-01T00:00:00+00:00",
    "token": "tm_secret",
    "seq": 9,
}


def a_token(id_: str, name: str, state: str = "valid") -> dict[str, Any]:
    return {
        "id": id_,
        "name": name,
        "team": "vision",
        "role": "submitter",
        "state": state,
        "issued_at": "2026-01-01T00:00:00+00:00",
        "expires_at": "2026-02-01T00:00:00+00:00",
        "revoked_at": None,
        "by": "admin",
    }


def asked(server: Server) -> tuple[str, Any]:
    """Tell the last question: its path below the prefix, and its body."""
    last = server.asked[-1]
    return last.path.removeprefix("/api/v1/"), json.loads(last.body or b"null")


def test_teams_are_listed_with_quotas_also_without_a_verb(
    terminal: Terminal, server: Server
):
    row = {
        "team": "vision",
        "parent": "",
        "paused": True,
        "until": None,
        "quotas": {"local": {"accelerators": 8, "borrowing": 2}},
        "by": "admin",
        "created_at": "2026-01-01T00:00:00+00:00",
    }
    server.answers("GET /api/v1/teams", Answer(body={"teams": [row]}))
    for verb in ((), ("list",)):
        shown = terminal.tm("teams", *verb).out
        assert shown.splitlines()[1].split() == [
            *("vision", "-", "yes", "local:", "8", "(+2)")
        ]
    assert json.loads(terminal.tm("teams", "-o", "json").out) == [row]
    assert terminal.tm("teams", "list", "-o", "name").out == "vision\n"


def test_a_team_is_created_with_the_next_steps(terminal: Terminal, server: Server):
    server.answers("POST /api/v1/teams", Answer(body=DONE))
    ended = terminal.tm("teams", "create", "vision", "--parent", "default")
    assert asked(server) == ("teams", {"team": "vision", "parent": "default"})
    assert ended.out == "team vision: created\n"
    assert "tm tokens create NAME --team vision" in ended.err


def test_a_pause_ends_by_the_servers_time(terminal: Terminal, server: Server):
    server.answers("GET /api/v1/teams", Answer(body={"teams": []}))
    server.answers(
        "POST /api/v1/teams/vision/pause", Answer(body=DONE), Answer(body=ALREADY)
    )
    server.answers("POST /api/v1/teams/vision/resume", Answer(body=DONE))
    terminal.tm("teams", "pause", "vision", "--for", "2h")
    path, body = asked(server)
    assert path == "teams/vision/pause"
    assert body["until"].endswith("+00:00")
    again = terminal.tm("teams", "pause", "vision")
    assert (asked(server)[1], again.out) == ({}, "it is paused\n")
    assert terminal.tm("teams", "resume", "vision").out == "team vision: goes on\n"


def test_a_quota_may_be_no_limit(terminal: Terminal, server: Server):
    server.answers("POST /api/v1/teams/vision/quota", Answer(body=DONE))
    ended = terminal.tm("teams", "quota", "vision", "-1", "--pool", "big")
    told = {"pool": "big", "accelerators": -1, "borrowing": 0}
    assert asked(server) == ("teams/vision/quota", told)
    assert ended.code == Exit.OK


def test_pools_are_created_and_changed(terminal: Terminal, server: Server):
    server.answers("POST /api/v1/pools", Answer(body=DONE))
    server.answers("POST /api/v1/pools/big/change", Answer(body=DONE))
    pool = {"pool": "big", "backend": "slurm", "port_first": 0, "port_last": 0}
    server.answers("GET /api/v1/pools", Answer(body={"pools": [pool]}))
    terminal.tm("pools", "create", "big", "--backend", "slurm")
    assert asked(server) == ("pools", {"pool": "big", "backend": "slurm"})
    terminal.tm("pools", "change", "big", "--port-first", "0", "--port-last", "0")
    ports = {"port_first": 0, "port_last": 0}
    assert asked(server) == ("pools/big/change", ports)
    assert terminal.tm("pools", "change", "big").code == Exit.INVALID
    assert terminal.tm("pools").out.splitlines()[1].split() == ["big", "slurm", "any"]


def test_a_new_token_alone_is_on_standard_output(terminal: Terminal, server: Server):
    server.answers("POST /api/v1/tokens", Answer(status=201, body=GIVEN))
    words = ("tokens", "create", "ci", "--team", "vision", "--role", "submitter")
    ended = terminal.tm(*words, "--expires", "12h")
    assert ended.out == "tm_secret\n"
    assert "shown only now" in ended.err
    assert "tm_secret" not in ended.err
    assert asked(server)[1] == {
        "name": "ci",
        "team": "vision",
        "role": "submitter",
        "expires_in_seconds": 43200.0,
    }
    assert json.loads(terminal.tm(*words, "-o", "json").out) == GIVEN


def test_a_token_is_revoked_by_its_name_or_the_beginning_of_its_id(
    terminal: Terminal, server: Server
):
    rows = [
        a_token("aa11", "ci"),
        a_token("aa22", "ci", "revoked"),
        a_token("bb33", "old", "expired"),
    ]
    server.answers("GET /api/v1/tokens", Answer(body={"tokens": rows}))
    for id_ in ("aa11", "bb33"):
        server.answers(f"POST /api/v1/tokens/{id_}/revoke", Answer(body=DONE))
    ended = terminal.tm("tokens", "revoke", "ci", "bb", "--reason", "leaked")
    assert ended.out.splitlines() == [
        "token ci (aa11): revoked",
        "token old (bb33): revoked",
    ]
    assert asked(server)[1] == {"reason": "leaked"}
    assert terminal.tm("tokens", "revoke", "nobody").code == Exit.NOT_FOUND
    several = terminal.tm("tokens", "revoke", "aa")
    assert several.code == Exit.INVALID
    assert "aa11, aa22" in several.err


def test_tokens_are_listed_with_how_they_are(terminal: Terminal, server: Server):
    rows = [a_token("aa11", "ci")]
    server.answers("GET /api/v1/tokens", Answer(body={"tokens": rows}))
    line = terminal.tm("tokens", "list").out.splitlines()[1].split()
    assert line[:5] == ["ci", "aa11", "vision", "submitter", "valid"]
    until = datetime.fromisoformat("2026-02-01T00:00:00+00:00").astimezone()
    assert " ".join(line[5:]) == until.strftime("%Y-%m-%d %H:%M:%S")


def test_a_missing_role_ends_with_its_own_code_and_what_to_do(
    terminal: Terminal, server: Server
):
    told = "it needs the role admin; an admin gives it: tm tokens create …"
    server.answers("POST /api/v1/teams", a_problem(403, told))
    ended = terminal.tm("teams", "create", "x")
    assert (ended.code, ended.err) == (Exit.FORBIDDEN, f"tm: {told}\n")


@pytest.mark.parametrize("text", ["", "5", "5x", "0d", "-1d", "1.5h"])
def test_what_is_no_duration_is_refused_with_examples(text: str):
    with pytest.raises(UsageError, match="30m, 12h, 90d"):
        seconds_of(text, "--expires")


def test_a_duration_is_read_in_its_unit():
    assert [seconds_of(t, "x") for t in ("30s", "2m", "1h", "1d", "1w")] == [
        *(30.0, 120.0, 3600.0, 86400.0, 604800.0)
    ]
