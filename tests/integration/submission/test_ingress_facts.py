"""Facts that other systems report over the bus: metrics, checkpoints, nodes."""

import uuid

import pytest
from nats.aio.msg import Msg
from tests.integration.submission.asking import SAVING, a_job, a_running_job, fields
from tests.integration.submission.others import connected_as, say_behind
from tests.integration.submission.publisher import Publisher

from trainmaster.core.envelope import Entry
from trainmaster.core.facts import Capacity, HealthReported, NodeRegistered
from trainmaster.core.ids import NodeKey
from trainmaster.core.ingress import Outcome
from trainmaster.core.messages import MetricSample
from trainmaster.testkit.cluster import Cluster, until

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="session")]

NODE = NodeKey("local", "n1")


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
