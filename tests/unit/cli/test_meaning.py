"""What `tm` says of jobs that are not clear, not there, or have nothing to show."""

from datetime import UTC, datetime
from typing import Any

import pytest
from tests.unit.cli.terminal import Terminal
from tests.unit.client.server import Answer, Server, a_problem

from trainmaster.cli.details import lines_of
from trainmaster.cli.exits import Exit
from trainmaster.cli.silence import why_nothing
from trainmaster.cli.words import day, size

pytestmark = pytest.mark.unit

NOW = datetime(2026, 1, 1, 0, 0, 5, tzinfo=UTC)
SPEC = {"nodes": 2, "ranks_per_node": 2, "output_directory": "/out/J1"}
SAID = {"job": "J1", "team": "default", "changed": True, "seq": 3, "message": ""}


def a_job(id_: str = "J1", state: str = "running", **more: Any) -> dict[str, Any]:
    since = "2026-01-01T00:00:00Z"
    known = {"team": "default", "name": "lm", "attempt": 1, "nodes": ["n1"]}
    return {**known, "id": id_, "state": state, "since": since, "spec": SPEC, **more}


def test_every_job_is_cancelled_even_if_one_is_refused(
    terminal: Terminal, server: Server
):
    for id_ in ("J1", "J2", "J4"):
        server.answers(f"GET /api/v1/jobs/{id_}", Answer(body=a_job(id_)))
    server.answers("GET /api/v1/jobs/J3", a_problem(404, "no job J3"))
    refused = a_problem(409, "job J2: the job is over: it succeeded")
    server.answers("POST /api/v1/jobs/default/J1/cancel", Answer(body=SAID))
    server.answers("POST /api/v1/jobs/default/J2/cancel", refused)
    server.answers("POST /api/v1/jobs/default/J4/cancel", Answer(body=SAID))
    ended = terminal.tm("cancel", "J1", "J2", "J3", "J4")
    assert ended.out.splitlines() == [
        "lm (J1): cancel requested",
        "lm (J4): cancel requested",
    ]
    assert ended.err.splitlines() == [
        "tm: job J2: the job is over: it succeeded",
        "tm: no job J3",
    ]
    assert ended.code == Exit.CONFLICT, "that of the first refusal"


def test_cancelling_a_cancelled_job_is_harmless_also_once_it_is_archived(
    terminal: Terminal, server: Server
):
    over = a_job(state="cancelled", archived=True)
    server.answers("GET /api/v1/jobs/J1", Answer(body=over))
    ended = terminal.tm("cancel", "J1")
    assert (ended.code, ended.err) == (Exit.OK, "")
    assert ended.out == "lm (J1): it is cancelled already, nothing was changed\n"


@pytest.mark.parametrize("words", [("status", "lm"), ("events", "lm"), ("logs", "lm")])
def test_the_newest_of_several_jobs_of_a_name_is_said_to_be_that(
    terminal: Terminal, server: Server, words: tuple[str, str]
):
    over = a_job("J3", "succeeded", namesakes=["J2", "J1"])
    server.answers("GET /api/v1/jobs/lm", Answer(body=over))
    server.answers("GET /api/v1/jobs/J3/events", Answer(body=[]))
    server.answers("GET /api/v1/jobs/J3/logs", Answer(body="x", kind="text/plain"))
    ended = terminal.tm(*words)
    assert ended.code == Exit.OK
    told = "Several jobs were called lm; this is the newest, J3. Others: J2, J1"
    assert told in ended.err


def test_a_job_that_was_named_by_its_id_is_not_explained(
    terminal: Terminal, server: Server
):
    over = a_job("J3", "succeeded", namesakes=["J2", "J1"])
    server.answers("GET /api/v1/jobs/J3", Answer(body=over))
    assert terminal.tm("status", "J3").err == ""


@pytest.mark.parametrize(
    ("job", "wanted", "said"),
    [
        (
            a_job(state="queued", attempt=0, reason="no room"),
            {},
            "the job has not started yet, it is queued: no room",
        ),
        (
            a_job(state="held", attempt=0, reason="held; `tm release lm` …"),
            {},
            "it is held: held; `tm release lm` …",
        ),
        (a_job(state="starting"), {}, "attempt 1 on n1 is starting"),
        (a_job(), {}, "attempt 1 on n1 runs for 5s and has written nothing"),
        (a_job(), {"rank": 4}, "There is no rank 4: the job's last one is 3."),
        (a_job(), {"attempt": 2}, "There is no attempt 2: the job's last one is 1."),
        (
            a_job(state="cancelled", attempt=0, reason="cancelled by ada"),
            {},
            "the job is over and never started: cancelled by ada",
        ),
        (a_job(state="succeeded"), {}, "own files are below /out/J1/logs"),
    ],
)
def test_it_is_said_why_there_is_no_output(
    job: dict[str, Any], wanted: dict[str, int], said: str
):
    asked = {"attempt": wanted.get("attempt"), "rank": wanted.get("rank")}
    assert said in why_nothing(job, NOW, **asked)


def test_logs_without_output_say_why(terminal: Terminal, server: Server):
    waits = a_job(state="queued", attempt=0, reason="no room")
    server.answers("GET /api/v1/jobs/J1", Answer(body=waits))
    server.answers("GET /api/v1/jobs/J1/logs", Answer(body="", kind="text/plain"))
    ended = terminal.tm("logs", "J1")
    assert (ended.code, ended.out) == (Exit.OK, "")
    assert "has not started yet, it is queued: no room" in ended.err


def test_a_job_shows_its_checkpoint_its_output_and_its_memory():
    job = a_job(
        state="succeeded",
        reason="all ranks exited 0, checkpoint of step 9 verified",
        verdict="all ranks exited 0",
        saved={"step": 9, "path": "/c/step-9"},
        spec={**SPEC, "memory_bytes_per_node": str(48 * 2**30)},
    )
    assert list(lines_of(job, NOW, wide=False)) == [
        "lm (J1): SUCCEEDED for 5s",
        "  reason        all ranks exited 0, checkpoint of step 9 verified",
        "  queue         team default",
        "  memory        48 GiB on each node",
        "  attempt       1 on n1",
        "  checkpoint    step 9, whole: /c/step-9",
        "  output        /out/J1",
    ]


@pytest.mark.parametrize(
    ("count", "said"),
    [(0, "-"), (512, "512 B"), (1536, "1.5 KiB"), (64 * 2**30, "64 GiB")],
)
def test_bytes_are_shown_as_people_say_them(count: int, said: str):
    assert size(count) == said


def test_a_time_is_shown_to_the_second():
    assert "." not in day("2026-01-01T00:00:00.123456+00:00")


def test_an_unwell_server_is_told_although_jobs_cannot_be_read(
    terminal: Terminal, server: Server
):
    parts = {"nats-server": "ready", "postgresql": "postgresql died and …"}
    server.answers("GET /readyz", Answer(status=503, body=parts))
    server.answers("GET /api/v1/jobs", a_problem(503, "the console is not ready"))
    ended = terminal.tm("status")
    assert ended.code == Exit.UNREACHABLE
    assert "  postgresql           postgresql died and …" in ended.out.splitlines()
    assert "jobs not over: not known now" in ended.out


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]):
    from trainmaster.cli.main import main

    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out.startswith("trainmaster ")
