"""Looking at jobs and nodes, and changing jobs."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.terminal import Terminal
from tests.unit.client.server import Answer, Server, a_problem

from trainmaster.cli.details import lines_of
from trainmaster.cli.exits import Exit

pytestmark = pytest.mark.unit

JOBS: list[dict[str, Any]] = [
    {
        "id": "01J0000000000000000000000A",
        "team": "default",
        "name": "char-lm",
        "state": "running",
        "attempt": 2,
        "priority": 0,
        "nodes": ["n1", "n2"],
        "step": 120,
        "loss": 1.834_567,
        "reason": "",
        "cause": "",
        "submitted_at": "2026-01-01T00:00:00Z",
        "since": "2026-01-01T00:00:00Z",
    },
    {
        "id": "01J0000000000000000000000B",
        "team": "vision",
        "name": "vit",
        "state": "queued",
        "attempt": 0,
        "priority": 100,
        "nodes": [],
        "step": None,
        "loss": None,
        "reason": "needs 8 accelerators\non one node",
        "cause": None,
    },
]
NODE = {
    "pool": "local",
    "node": "n1",
    "state": "ready",
    "address": "127.0.0.1",
    "accelerators": 4,
    "accelerators_used": 2,
    "cpus": 8,
    "jobs": ["J1"],
    "blocked_by": [],
}
PLAIN = (
    "JOB                         NAME     STATE    FOR  ATTEMPT  STEP   LOSS  NODES   "
    "REASON"
)


@pytest.fixture
def with_jobs(server: Server) -> Server:
    server.answers("GET /api/v1/jobs", Answer(body={"jobs": JOBS}))
    return server


def test_a_list_in_a_pipe_is_aligned_and_whole(terminal: Terminal, with_jobs: Server):
    ended = terminal.tm("list", "--state", "running")
    assert with_jobs.asked[0].query == {"state": "running"}
    head, first, second = ended.out.splitlines()
    assert re.sub(" +", " ", head) == re.sub(" +", " ", PLAIN)
    assert re.sub(" +", " ", first).endswith(" 2 120 1.835 n1, n2 -")
    assert "needs 8 accelerators on one node" in second
    assert "\x1b" not in ended.out


def test_a_wide_list_has_more_columns(terminal: Terminal, with_jobs: Server):
    del with_jobs
    head = terminal.tm("list", "-o", "wide").out.splitlines()[0]
    assert {"TEAM", "PRIORITY", "CAUSE", "SUBMITTED"} <= set(head.split())


def test_a_list_is_data_when_asked_for(terminal: Terminal, with_jobs: Server):
    del with_jobs
    assert json.loads(terminal.tm("list", "-o", "json").out) == JOBS
    assert terminal.tm("list", "-o", "name").out.split() == [job["id"] for job in JOBS]
    assert "  name: char-lm\n" in terminal.tm("list", "-o", "yaml").out


def test_an_empty_list_says_so_to_the_person_only(terminal: Terminal, server: Server):
    server.answers("GET /api/v1/jobs", Answer(body={"jobs": []}))
    ended = terminal.tm("list")
    assert ended.out == ""
    assert "No jobs" in ended.err
    assert json.loads(terminal.tm("list", "-o", "json").out) == []


def test_a_list_on_a_screen_has_colours(terminal: Terminal, with_jobs: Server):
    del with_jobs
    seen = terminal.tm_on_a_screen("list")
    assert "\x1b[32mrunning" in seen
    assert "01J0000000000000000000000A" in seen


def test_nodes_show_what_is_used_and_who_blocks_them(
    terminal: Terminal, server: Server
):
    lost = NODE | {"node": "n2", "state": "lost", "blocked_by": ["J0"], "jobs": []}
    server.answers("GET /api/v1/nodes", Answer(body={"nodes": [NODE, lost]}))
    lines = terminal.tm("nodes").out.splitlines()
    assert [re.split("  +", line) for line in lines] == [
        ["NODE", "POOL", "STATE", "ACCELERATORS", "CPUS", "JOBS", "BLOCKED BY"],
        ["n1", "local", "ready", "2/4", "8", "J1", "-"],
        ["n2", "local", "lost", "2/4", "8", "-", "J0"],
    ]


def test_a_job_is_told_state_first():
    job: dict[str, Any] = JOBS[0] | {
        "pool": "local",
        "restore": {"path": "/c/step-100", "step": 100},
        "waiting": [{"code": "gang", "message": "needs 2 nodes, 1 is free"}],
        "unreclaimed": [{"attempt": 1, "nodes": ["n3"], "awaits": ["proof ..."]}],
        "attempts": [
            {
                "attempt": 1,
                "nodes": ["n1", "n3"],
                "placed_at": "2026-01-01T00:00:00Z",
                "cause": "rank_failed",
                "reason": "rank 3 was killed",
            },
            {"attempt": 2, "nodes": ["n1", "n2"]},
        ],
    }
    now = datetime(2026, 1, 1, 3, 20, tzinfo=UTC)
    assert list(lines_of(job, now, wide=False)) == [
        "char-lm (01J0000000000000000000000A): RUNNING for 3h20m",
        "  queue         team default, pool local, priority 0",
        "  attempt       2 on n1, n2",
        "  progress      step 120, loss 1.835",
        "  restored from step 100 /c/step-100",
        "  waits for     needs 2 nodes, 1 is free",
        "  awaits proof  attempt 1 on n3",
        "  attempts      #1  n1, n3  3h20m ago  rank_failed  rank 3 was killed",
        "                #2  n1, n2",
    ]


def test_a_job_is_found_and_told(terminal: Terminal, server: Server):
    server.answers("GET /api/v1/jobs/char", Answer(body=JOBS[0]))
    assert terminal.tm("status", "char").out.startswith("char-lm (01J00")
    assert json.loads(terminal.tm("status", "char", "-o", "json").out) == JOBS[0]
    assert terminal.tm("status", "char", "-o", "name").out == f"{JOBS[0]['id']}\n"


def test_without_a_job_the_server_is_told(terminal: Terminal, with_jobs: Server):
    services = {"scheduler": "ready", "monitor": "catching up"}
    with_jobs.answers("GET /readyz", Answer(status=503, body=services))
    ended = terminal.tm("status")
    assert ended.out.splitlines() == [
        f"trainmaster at {with_jobs.url}",
        "  scheduler            ready",
        "  monitor              catching up",
        "jobs not over: 1 queued, 1 running",
    ]


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (404, Exit.NOT_FOUND),
        (409, Exit.CONFLICT),
        (401, Exit.FORBIDDEN),
        (403, Exit.FORBIDDEN),
        (422, Exit.INVALID),
        (500, Exit.FAILED),
        (503, Exit.UNREACHABLE),
    ],
)
@pytest.mark.parametrize("words", [("status", "x"), ("cancel", "x"), ("logs", "x")])
def test_what_went_wrong_is_said_and_coded(
    terminal: Terminal, server: Server, status: int, code: Exit, words: tuple[str, ...]
):
    answer = a_problem(status, "no job `x`; see `tm list`")
    server.answers("GET /api/v1/jobs/x", answer)
    server.answers("GET /api/v1/jobs/x/logs", answer)
    ended = terminal.tm(*words)
    assert ended.code == code
    told = "no job `x`; see `tm list`"
    if status == 503:
        told = f"trainmaster at {server.url} cannot answer now: {told}; "
        told += "`tm status` says what it lacks"
    assert ended.err == f"tm: {told}\n"


def test_jobs_are_changed_by_what_they_are_called(terminal: Terminal, server: Server):
    server.answers("GET /api/v1/jobs/lm", Answer(body=JOBS[0] | {"id": "J1"}))
    said = {"job": "J1", "team": "default", "changed": True, "seq": 3, "message": ""}
    again = said | {"changed": False, "message": "ada asked for it before"}
    server.answers(
        "POST /api/v1/jobs/default/J1/cancel", Answer(body=said), Answer(body=again)
    )
    first = terminal.tm("cancel", "lm", "--reason", "enough")
    second = terminal.tm("cancel", "lm")
    assert first.out == "char-lm (J1): cancel requested\n"
    assert second.out == "char-lm (J1): ada asked for it before\n"
    assert (first.code, second.code) == (Exit.OK, Exit.OK)
    assert server.asked[1].body == b'{"reason":"enough"}'


def test_nodes_are_drained_and_used_again_by_name(terminal: Terminal, server: Server):
    rows = [NODE, NODE | {"node": "n2"}, NODE | {"node": "n2", "pool": "b"}]
    server.answers("GET /api/v1/nodes", Answer(body={"nodes": rows}))
    said = {"node": "n1", "pool": "local", "changed": True, "seq": 3, "message": ""}
    again = said | {"changed": False, "message": "it is draining"}
    drain = "POST /api/v1/nodes/local/n1/drain"
    server.answers(drain, Answer(body=said), Answer(body=again))
    server.answers("POST /api/v1/nodes/b/n2/undrain", Answer(body=said))
    first = terminal.tm("nodes", "drain", "n1", "--reason", "new disks")
    assert first.out == "n1 (local): gets no new work\n"
    assert server.asked[-1].body == b'{"reason":"new disks"}'
    assert terminal.tm("nodes", "drain", "n1").out == "n1 (local): it is draining\n"
    back = terminal.tm("nodes", "undrain", "b/n2")
    assert back.out == "n2 (b): in service again\n"


@pytest.mark.parametrize(
    ("name", "problem"),
    [("n9", "no node n9"), ("n2", "2 nodes are called n2")],
)
def test_a_node_that_is_not_clear_is_refused_before_anything_is_asked(
    terminal: Terminal, server: Server, name: str, problem: str
):
    rows = [NODE, NODE | {"node": "n2"}, NODE | {"node": "n2", "pool": "b"}]
    server.answers("GET /api/v1/nodes", Answer(body={"nodes": rows}))
    ended = terminal.tm("nodes", "drain", "n1", name)
    assert ended.code == Exit.INVALID
    assert ended.err.startswith(f"tm: {problem}; name one of: ")
    assert [asked.method for asked in server.asked] == ["GET"]


def test_a_server_that_is_gone_is_named_with_what_to_do(
    terminal: Terminal, tmp_path: Path
):
    url = "http://127.0.0.1:9"
    kept = tmp_path / "credentials.json"
    kept.write_text(json.dumps({"url": url, "token": "x"}))
    ended = terminal.tm("list")
    assert ended.code == Exit.UNREACHABLE
    assert ended.err == (
        f"tm: trainmaster at {url} does not answer; start it with `tm up`\n"
    )
    kept.unlink()
    ended = terminal.tm("list")
    assert ended.code == Exit.UNREACHABLE
    assert "start it with `tm up`" in ended.err
