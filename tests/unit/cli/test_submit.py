"""Submitting, and staying until it is over."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.terminal import Terminal, interrupted
from tests.unit.client.server import Answer, Server, a_problem, a_stream

from trainmaster.cli.exits import Exit

pytestmark = pytest.mark.unit

RECEIPT = {"job": "J1", "team": "default", "name": "lm", "seq": 7}
JOB = {
    "id": "J1",
    "team": "default",
    "name": "lm",
    "state": "running",
    "spec": {"nodes": 2, "ranks_per_node": 1},
}


def an_event(seq: int, kind: str, summary: str = "") -> dict[str, Any]:
    return {
        "seq": seq,
        "time": "2026-01-01T00:00:00Z",
        "type": kind,
        "attempt": 1,
        "summary": summary,
        "event": {},
    }


def a_chunk(offset: int, text: str, rank: int = 0) -> dict[str, Any]:
    return {"rank": rank, "attempt": 1, "offset": offset, "text": text}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "train.yaml"
    path.write_text("name: lm\ncommand: x\n")
    return path


@pytest.fixture(autouse=True)
def _accepting(server: Server) -> None:
    server.answers("POST /api/v1/jobs", Answer(status=201, body=RECEIPT))
    server.answers("GET /api/v1/jobs/J1", Answer(body=JOB))


def goes(server: Server, *events: dict[str, Any]) -> None:
    server.answers("GET /api/v1/jobs/J1/events", a_stream(events))


def test_a_job_is_submitted_with_its_folder(
    terminal: Terminal, server: Server, file: Path
):
    ended = terminal.tm("submit", str(file), "--name", "mine")
    assert (ended.code, ended.err) == (Exit.OK, "")
    assert ended.out == "Submitted lm as J1 (team default).\n"
    [asked] = server.asked
    assert asked.body == file.read_bytes()
    assert asked.query == {"name": "mine"}
    assert asked.headers["x-source"].endswith("train.yaml")
    assert asked.headers["x-source-directory"] == str(file.parent)
    assert asked.headers["content-type"] == "application/yaml"


@pytest.mark.parametrize(
    ("options", "out"),
    [
        (["--parsable"], "J1\n"),
        (["-o", "name"], "J1\n"),
        (["-o", "json"], json.dumps(RECEIPT, indent=2) + "\n"),
        (["-o", "yaml"], "job: J1\nteam: default\nname: lm\nseq: 7\n"),
    ],
)
def test_a_script_gets_what_it_wants(
    terminal: Terminal, file: Path, options: list[str], out: str
):
    assert terminal.tm("submit", str(file), *options).out == out


def test_a_json_file_is_sent_as_json(
    terminal: Terminal, server: Server, tmp_path: Path
):
    file = tmp_path / "train.json"
    file.write_text("{}")
    terminal.tm("submit", str(file))
    assert server.asked[0].headers["content-type"] == "application/json"


def test_a_file_that_is_not_there_is_named(terminal: Terminal, server: Server):
    ended = terminal.tm("submit", "none.yaml")
    assert ended.code == Exit.INVALID
    assert ended.err.startswith("tm: none.yaml: No such file or directory")
    assert server.asked == []


def test_every_fault_is_shown_with_its_place_first(
    terminal: Terminal, server: Server, file: Path
):
    faults = [
        {"field": "noeds", "message": "unknown field `noeds`", "line": 3, "column": 1},
        {"field": "hold", "message": "`hold` is wrong", "line": 4, "column": 1},
    ]
    server.answers(
        "POST /api/v1/jobs/validate",
        a_problem(422, "...", source="train.yaml", faults=faults),
    )
    ended = terminal.tm("submit", str(file), "--dry-run")
    assert ended.code == Exit.INVALID
    assert ended.err == (
        "train.yaml:3:1 unknown field `noeds`\n"
        "train.yaml:4:1 `hold` is wrong\n"
        "Nothing was submitted.\n"
    )


def test_a_dry_run_without_a_server_reads_the_file_here(terminal: Terminal, file: Path):
    (terminal.data / "credentials.json").unlink()
    ended = terminal.tm("submit", str(file), "--dry-run", "-o", "json")
    assert ended.code == Exit.OK
    assert json.loads(ended.out)["work_directory"] == str(file.parent)
    assert "Checked here: teams, pools, nodes and stores are not known." in ended.err


def test_a_wrong_file_is_told_without_a_server_as_well(terminal: Terminal, file: Path):
    (terminal.data / "credentials.json").unlink()
    file.write_text("name: lm\ncomand: x\n")
    ended = terminal.tm("submit", str(file), "--dry-run")
    assert (ended.code, ended.out) == (Exit.INVALID, "")
    assert f"{file}:2:1 unknown field `comand`. Did you mean `command`?" in ended.err


def test_a_dry_run_shows_what_would_be_submitted(
    terminal: Terminal, server: Server, file: Path
):
    spec = {"name": "lm", "command": ["x"], "env": {}, "checkpoint": {"directory": ""}}
    server.answers("POST /api/v1/jobs/validate", Answer(body={"spec": spec}))
    ended = terminal.tm("submit", str(file), "--dry-run")
    assert ended.out == (
        'name: lm\ncommand:\n  - x\nenv: {}\ncheckpoint:\n  directory: ""\n'
    )
    assert [asked.path for asked in server.asked] == ["/api/v1/jobs/validate"]


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("succeeded", Exit.OK),
        ("failed", Exit.FAILED),
        ("cancelled", Exit.FAILED),
    ],
)
def test_waiting_ends_as_the_job_does(
    terminal: Terminal, server: Server, file: Path, kind: str, code: Exit
):
    goes(server, an_event(7, "submitted"), an_event(9, kind, f"{kind}: so it was"))
    ended = terminal.tm("submit", str(file), "--wait")
    assert ended.code == code
    assert ended.out.splitlines()[1:] == [f"lm (J1) {kind}: so it was"]


def test_following_shows_events_and_output_to_the_last_line(
    terminal: Terminal, server: Server, file: Path
):
    goes(server, an_event(7, "attempt_started", "2 ranks"), an_event(9, "succeeded"))
    chunks = [
        a_chunk(0, "step 1\nste"),
        a_chunk(0, "step 1\n", 1),
        a_chunk(10, "p 2\nend"),
    ]
    server.answers("GET /api/v1/jobs/J1/logs", a_stream(chunks))
    ended = terminal.tm("submit", str(file), "--follow")
    assert ended.code == Exit.OK
    lines = ended.out.splitlines()
    assert [line for line in lines if line.startswith("[")] == [
        "[0] step 1",
        "[1] step 1",
        "[0] step 2",
        "[0] end",
    ]
    assert any("attempt_started" in line and "#1" in line for line in lines)


def test_a_job_that_is_not_known_yet_is_waited_for(
    terminal: Terminal, server: Server, file: Path
):
    server.answers(
        "POST /api/v1/jobs", Answer(status=201, body=RECEIPT | {"job": "J2"})
    )
    terminal.tm("submit", str(file))  # takes the first answer
    server.answers(
        "GET /api/v1/jobs/J2", a_problem(404, "no job"), Answer(body=JOB | {"id": "J2"})
    )
    server.answers("GET /api/v1/jobs/J2/events", a_stream([an_event(9, "succeeded")]))
    assert terminal.tm("submit", str(file), "--wait").code == Exit.OK


def test_waiting_too_long_ends_with_124_and_the_job_goes_on(
    terminal: Terminal, server: Server, file: Path
):
    hold = threading.Event()
    server.answers(
        "GET /api/v1/jobs/J1/events", a_stream([an_event(7, "submitted")], hold=hold)
    )
    ended = terminal.tm("submit", str(file), "--wait", "--timeout", "0.2")
    hold.set()
    assert ended.code == Exit.TIMED_OUT
    assert "goes on" in ended.err
    assert not any(asked.path.endswith("/cancel") for asked in server.asked)


def test_a_server_that_goes_away_while_waiting_is_said(
    terminal: Terminal, server: Server, file: Path
):
    server.answers("GET /api/v1/jobs/J1/events", a_problem(503, "it is stopping"))
    ended = terminal.tm("submit", str(file), "--wait")
    assert ended.code == Exit.UNREACHABLE
    assert ended.err.startswith(
        f"tm: trainmaster at {server.url} cannot answer now: it is stopping; "
    )


def test_ctrl_c_while_waiting_only_detaches(
    terminal: Terminal, server: Server, file: Path
):
    hold = threading.Event()
    server.answers(
        "GET /api/v1/jobs/J1/events", a_stream([an_event(7, "submitted")], hold=hold)
    )
    ended = interrupted(
        terminal.tm_process("submit", str(file), "--wait"),
        once=lambda: any(asked.path.endswith("/events") for asked in server.asked),
    )
    hold.set()
    assert ended.code == Exit.DETACHED
    assert "Detached; job J1 goes on" in ended.err
    assert "Traceback" not in ended.err
    assert not any(asked.path.endswith("/cancel") for asked in server.asked)
