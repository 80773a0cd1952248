"""What other systems say over the bus: accepted, refused or parked, and answered."""

import json
import uuid
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from nats.aio.msg import Msg
from tests.integration.submission.others import connected_as, say_behind
from tests.integration.submission.publisher import Publisher, attributes, publisher

from trainmaster.core.envelope import Entry
from trainmaster.core.events import AttemptPlaced, CancelRequested, Event, Submitted
from trainmaster.core.facts import Capacity, HealthReported, NodeRegistered
from trainmaster.core.ids import JobId, JobKey, NodeKey
from trainmaster.core.ingress import Outcome, RequestAnswered
from trainmaster.core.messages import MetricSample
from trainmaster.core.values import MemberSlot
from trainmaster.testkit.cluster import Cluster, until

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

JOB = "name: lm\ncommand: python train.py\nwork_directory: /there\n"
SAVING = f"{JOB}checkpoint:\n  directory: /data/ckpt\n"
NODE = NodeKey("local", "n1")


@pytest_asyncio.fixture(loop_scope="module")
async def ci(door: Cluster, with_sources: Path) -> AsyncGenerator[Publisher]:
    """Publish as a system that may submit for one team."""
    assert door.processes["submission"].poll() is None
    async with publisher(with_sources / "sources" / "ci.json") as connected:
        yield connected


@pytest_asyncio.fixture(loop_scope="module")
async def dcgm(door: Cluster, with_sources: Path) -> AsyncGenerator[Publisher]:
    """Publish as a system that may report on nodes."""
    assert door.processes["submission"].poll() is None
    async with publisher(with_sources / "sources" / "dcgm.json") as connected:
        yield connected


async def events(door: Cluster, job: str) -> list[Event]:
    """List what the log says of a job."""
    log = await door.log()
    found = await log.entries("JOBS", f"tm.job.default.{job}.>")
    return [entry.event for entry in found if isinstance(entry, Entry)]


async def a_job(ci: Publisher, id_: str, file: str = JOB) -> JobKey:
    await ci.say("job_requested", id_, file=file)
    answer = await ci.told(id_)
    assert answer.outcome is Outcome.ACCEPTED, answer
    return JobKey(answer.team, JobId(answer.job))


async def a_running_job(
    door: Cluster, ci: Publisher, id_: str, file: str = JOB
) -> JobKey:
    key = await a_job(ci, id_, file)
    slot = MemberSlot(node="n1", ranks=1)
    placed = AttemptPlaced(attempt=1, pool="local", members=(slot,))
    await say_behind(door.stack, key, placed)
    return key


def fields(answer: RequestAnswered) -> list[str]:
    assert answer.outcome is Outcome.REFUSED, answer
    return [fault.field for fault in answer.faults]


# ------------------------------------------------------------------------------- jobs


@pytest.mark.parametrize("structured", [False, True])
@pytest.mark.parametrize(
    "file", [JOB, json.dumps({"name": "lm", "command": "x", "work_directory": "/t"})]
)
async def test_a_job_is_submitted_from_text_and_from_json_in_both_modes(
    door: Cluster, ci: Publisher, file: str, *, structured: bool
):
    id_ = f"job-{structured}-{file[0] == '{'}"
    say = ci.say_structured if structured else ci.say
    await say("job_requested", id_, file=file)
    answer = await ci.told(id_)
    [submitted] = await events(door, answer.job)
    assert isinstance(submitted, Submitted)
    assert (submitted.by, submitted.origin) == ("source:ci", "/ci/42")
    assert (answer.team, answer.kind) == ("default", "job_requested")
    assert answer.seq > 0


async def test_a_wrong_file_is_refused_with_every_field_and_its_place(ci: Publisher):
    await ci.say("job_requested", "wrong", file=f"{JOB}nodes: many\nretrys: 3\n")
    answer = await ci.told("wrong")
    assert [(f.field, f.line) for f in answer.faults] == [("nodes", 4), ("retrys", 5)]
    assert "did you mean" in answer.faults[1].message.lower()


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({}, "file"),
        ({"file": 7}, "file"),
        ({"file": JOB, "format": "toml"}, "format"),
        ({"file": JOB, "directory": "here"}, "directory"),
        ({"file": f"{JOB}team: vision\n"}, "team"),
        ({"file": f"{JOB}pool: nowhere\n"}, "pool"),
        ({"file": JOB, "overlay": "prod"}, "overlays"),
    ],
)
async def test_what_is_wrong_with_a_job_is_named(
    ci: Publisher, data: dict[str, Any], field: str
):
    id_ = uuid.uuid4().hex
    await ci.say("job_requested", id_, **data)
    assert fields(await ci.told(id_)) == [field]


async def test_a_source_submits_only_for_its_team(door: Cluster, with_sources: Path):
    assert door.processes["submission"].poll() is None
    async with publisher(with_sources / "sources" / "elsewhere.json") as elsewhere:
        await elsewhere.say("job_requested", "mine", file=JOB)
        answer = await elsewhere.told("mine")
    assert fields(answer) == ["team"]
    assert "source:elsewhere" in answer.faults[0].message


async def test_a_job_is_cancelled_and_a_second_time_changes_nothing(
    door: Cluster, ci: Publisher
):
    key = await a_job(ci, "to-cancel")
    for id_ in ("cancel-1", "cancel-2"):
        await ci.say("cancel_requested", id_, job=key.job, reason="newer commit")
    first, second = await ci.told("cancel-1"), await ci.told("cancel-2")
    assert (first.outcome, second.outcome) == (Outcome.ACCEPTED, Outcome.ACCEPTED)
    assert first.seq > 0
    assert (second.seq, second.job) == (0, key.job)
    told = [e for e in await events(door, key.job) if isinstance(e, CancelRequested)]
    assert [(e.by, e.reason) for e in told] == [("source:ci", "newer commit")]


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({}, "job"),
        ({"job": "none"}, "job"),
        ({"job": "a b"}, "job"),
        ({"job": "x", "team": "a.b"}, "team"),
        ({"job": "x", "team": "vision"}, "team"),
    ],
)
async def test_what_is_wrong_with_a_cancel_is_named(
    ci: Publisher, data: dict[str, str], field: str
):
    id_ = uuid.uuid4().hex
    await ci.say("cancel_requested", id_, **data)
    assert fields(await ci.told(id_)) == [field]


# ------------------------------------------------------- checkpoints, metrics, nodes


async def test_a_metric_goes_where_the_ranks_metrics_go(door: Cluster, ci: Publisher):
    key = await a_running_job(door, ci, "measured")
    values = {"loss": 0.5, "eval/bad": "NaN"}
    await ci.say("metric_reported", "m", job=key.job, rank=3, step=7, values=values)
    assert (await ci.told("m")).outcome is Outcome.ACCEPTED
    log = await door.log()
    subject = f"tm.metric.default.{key.job}.1.3"
    [stored] = [raw async for raw in log.history("METRICS", subject)]
    sample = MetricSample.from_json(stored.body)
    assert (sample.step, sample.values["loss"]) == (7, 0.5)
    assert sample.values["eval/bad"] != sample.values["eval/bad"]  # NaN


async def test_what_is_wrong_with_a_metric_is_named(door: Cluster, ci: Publisher):
    waiting = await a_job(ci, "waiting")
    running = await a_running_job(door, ci, "running")
    for n, (data, wrong) in enumerate(
        (
            ({"job": waiting.job, "values": {"a": 1}}, ["job"]),
            ({"job": running.job}, ["values"]),
            ({"job": running.job, "attempt": 2, "values": {"a": 1}}, ["attempt"]),
            (
                {"job": running.job, "rank": -1, "step": -1, "values": {"": 1}},
                ["rank", "step", "values"],
            ),
            ({"job": running.job, "values": {"a": "high"}}, ["values.a"]),
            ({"job": running.job, "step": 1.5, "values": {"a": 1}}, ["step"]),
            ({"job": "none", "values": {"a": 1}}, ["job"]),
        )
    ):
        await ci.say("metric_reported", f"bad-metric-{n}", **data)
        assert fields(await ci.told(f"bad-metric-{n}")) == wrong


async def test_a_saved_checkpoint_is_hinted_and_never_verified(
    door: Cluster, ci: Publisher
):
    key = await a_running_job(door, ci, "saving", SAVING)
    heard: list[str] = []

    async def hear(message: Msg) -> None:
        heard.append(message.subject)

    async with connected_as(door.stack, "checkpoint-manager") as bus:
        await bus.subscribe("tm.hint.checkpoint.*.*", hear)
        await bus.client.flush()
        path = "/data/ckpt/step-7"
        await ci.say("checkpoint_saved", "saved", job=key.job, path=path, step=7)
        assert (await ci.told("saved")).outcome is Outcome.ACCEPTED
        await until("the hint is heard", lambda: heard)
    assert heard == [f"tm.hint.checkpoint.default.{key.job}"]
    log = await door.log()
    assert await log.entries("JOBS", f"tm.note.default.{key.job}.>") == []


@pytest.mark.parametrize("path", ["", "ckpt", "/data/ckpt/../../etc", "/data/ckpts/1"])
async def test_a_checkpoint_elsewhere_is_refused(
    door: Cluster, ci: Publisher, path: str
):
    key, id_ = await a_running_job(door, ci, uuid.uuid4().hex, SAVING), uuid.uuid4().hex
    await ci.say("checkpoint_saved", id_, job=key.job, path=path, step=7)
    assert fields(await ci.told(id_)) == ["path"]


async def test_a_job_that_saves_nothing_has_no_checkpoint(door: Cluster, ci: Publisher):
    key = await a_running_job(door, ci, "plain")
    await ci.say("checkpoint_saved", "nowhere", job=key.job, path="/x", step=7)
    assert fields(await ci.told("nowhere")) == ["job"]


async def test_a_nodes_health_is_a_fact_on_the_log_once(door: Cluster, dcgm: Publisher):
    await say_behind(door.stack, NODE, NodeRegistered(capacity=Capacity(cpus=4)))
    report = {"node": "n1", "check": "gpu", "evidence": ["Xid 79"]}
    for n, problem in enumerate(("fell off the bus", "fell off the bus", "")):
        await dcgm.say("node_reported", f"health-{n}", problem=problem, **report)
        assert (await dcgm.told(f"health-{n}")).outcome is Outcome.ACCEPTED
    found = await (await door.log()).entries(
        "NODES", "tm.node.local.n1.health_reported"
    )
    told = [e.event for e in found if isinstance(e, Entry)]
    assert [e.problem for e in told if isinstance(e, HealthReported)] == [
        "fell off the bus",
        "",
    ]


async def test_only_whoever_may_reports_on_nodes_that_are_there(
    ci: Publisher, dcgm: Publisher
):
    await ci.say("node_reported", "not-mine", node="n1", check="gpu")
    assert fields(await ci.told("not-mine")) == ["team"]
    await dcgm.say("node_reported", "no-node", node="n99", check="gpu")
    assert fields(await dcgm.told("no-node")) == ["node"]


# ------------------------------------------------------------------------------ poison

GOOD = attributes("job_requested", "p")
STRUCTURED = {"content-type": "application/cloudevents+json"}
POISON: dict[str, tuple[bytes, dict[str, str], str]] = {
    "not JSON": (b"{", GOOD, "not JSON"),
    "no object": (b"[1]", GOOD, "no object"),
    "one megabyte": (b'{"file":"' + b"x" * 10**6 + b'"}', GOOD, "1,000,011 bytes"),
    "not UTF-8": (b'{"file":"\xff"}', GOOD, "not JSON"),
    "NaN": (b'{"values":{"loss":NaN}}', GOOD, 'the string "NaN"'),
    "deep": (b'{"a":' * 5000, GOOD, "not JSON"),
    "no attributes": (b"{}", {}, "`ce-specversion`, `ce-id`, `ce-source`, `ce-type`"),
    "no id": (b"{}", {**GOOD, "ce-id": ""}, "`ce-id`"),
    "long id": (b"{}", {**GOOD, "ce-id": "x" * 129}, "`ce-id` cannot be used"),
    "unknown type": (b"{}", {**GOOD, "ce-type": "com.example.x"}, "com.example.x"),
    "other type": (b"{}", attributes("node_reported", "p"), "NodeReported"),
    "old version": (b"{}", {**GOOD, "ce-specversion": "0.3"}, "'0.3'"),
    "XML": (b"<a/>", {**GOOD, "content-type": "application/xml"}, "application/xml"),
    "structured, not JSON": (b"{", STRUCTURED, "not JSON"),
    "structured, empty": (b"{}", STRUCTURED, "attributes are missing"),
    "structured, bad base64": (b'{"data_base64":"*"}', STRUCTURED, "base64"),
}


@pytest.mark.parametrize("name", POISON)
async def test_poison_is_parked_with_a_reason_and_holds_up_nobody(
    door: Cluster, ci: Publisher, name: str
):
    body, headers, reason = POISON[name]
    before = len(ci.answers)
    subject = "tm.in.ci.job_requested"
    await ci.say("job_requested", f"before {name}", file=JOB)
    seq = await ci.publish(subject, body, headers)
    await ci.say("job_requested", f"after {name}", file=JOB)
    good = [await ci.told(f"{when} {name}") for when in ("before", "after")]
    assert [answer.outcome for answer in good] == [Outcome.ACCEPTED] * 2
    [told] = [a for a in ci.answers[before:] if a.outcome is Outcome.PARKED]
    assert reason in told.reason
    parked = await parked_of(door, seq)
    assert (parked["subject"], parked["bytes"]) == (subject, len(body))
    assert parked["reason"] == told.reason


async def test_an_unknown_kind_is_parked(door: Cluster, ci: Publisher):
    seq = await ci.publish("tm.in.ci.job_wished", b"{}", GOOD)
    parked = await parked_of(door, seq)
    assert "'job_wished' is not known (known: job_requested" in parked["reason"]


async def test_a_subject_that_is_too_long_is_parked(door: Cluster, ci: Publisher):
    seq = await ci.publish("tm.in.ci.job_requested.x", b"{}", GOOD)
    assert "tm.in.SOURCE.KIND" in (await parked_of(door, seq))["reason"]


async def parked_of(door: Cluster, seq: int) -> dict[str, Any]:
    """Wait until a message of INGRESS is parked, and show it as the API does."""

    def there() -> dict[str, Any]:
        answer = door.ask("GET", "/parked?limit=200", service="submission")
        found = [each for each in answer.json()["parked"] if each["seq"] == seq]
        return found[0] if found else {}

    found: dict[str, Any] = await until(f"message {seq} is parked", there)
    return found


async def test_a_parked_message_is_shown_and_replayed_as_it_was(
    door: Cluster, ci: Publisher
):
    body = b'{"file": "\xff"}'
    seq = await ci.publish("tm.in.ci.job_requested", body, GOOD)
    number = (await parked_of(door, seq))["number"]
    shown = door.ask("GET", f"/parked/{number}", service="submission").json()
    assert shown["text"] == '{"file": "\ufffd"}'
    assert shown["headers"]["ce-id"] == "p"
    assert door.ask("POST", f"/parked/{number}/replay").status_code == 200
    gone = door.ask("GET", f"/parked/{number}", service="submission")
    assert gone.status_code == 404
    again = await parked_of(door, await _newest(door))
    assert again["number"] > number


async def _newest(door: Cluster) -> int:
    """Find the replayed message: it was stored last."""
    return (await (await door.log()).facts("INGRESS")).last_seq
