"""A source may say its own things and read its own answers, and nothing else."""

import json
from pathlib import Path

import pytest
from nats.errors import Error as NatsError
from tests.integration.submission.publisher import Publisher, publisher

from trainmaster.testkit.cluster import Cluster, until

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="session")]


@pytest.mark.parametrize(
    "subject",
    [
        "tm.in.dcgm.job_requested",
        "tm.in_reply.ci.x",
        "tm.job.default.x.submitted",
        "tm.job.default.x.cancel_requested",
        "tm.note.default.x.checkpoint_verified",
        "tm.metric.default.x.1.0",
        "tm.node.local.n1.health_reported",
        "tm.status.node.local.n1",
        "tm.hint.checkpoint.default.x",
        "tm.parked.INGRESS",
        "tm.ask.local.n1.scan",
        "$JS.API.STREAM.INFO.JOBS",
        "$JS.API.STREAM.PURGE.INGRESS",
        "$JS.API.CONSUMER.CREATE.INGRESS.ci",
        "$JS.API.CONSUMER.CREATE.JOBS.ci",
        "$JS.API.DIRECT.GET.JOBS",
        "$JS.API.DIRECT.GET.REPLIES",
        "$JS.API.DIRECT.GET.REPLIES.tm.in_reply.dcgm.x",
        "$JS.ACK.INGRESS.submission.1.1.1.1.1",
    ],
)
async def test_a_source_says_nothing_but_its_own(ci: Publisher, subject: str):
    await ci.client.publish(subject, b"{}")
    assert f'violation for publish to "{subject.lower()}"' in await ci.complaint()


@pytest.mark.parametrize(
    "subject",
    [
        "tm.in.>",
        "tm.in_reply.>",
        "tm.in_reply.dcgm.>",
        "tm.job.>",
        "tm.watch.>",
        "tm.out.>",
        "_INBOX_submission.>",
        "_INBOX.>",
        ">",
    ],
)
async def test_a_source_hears_nothing_but_its_own(ci: Publisher, subject: str):
    await ci.client.subscribe(subject)  # pyright: ignore[reportUnknownMemberType]
    assert f'violation for subscription to "{subject.lower()}"' in await ci.complaint()


async def test_a_source_that_is_taken_out_of_the_file_may_not_come_in(
    door: Cluster, with_sources: Path
):
    file = with_sources / "sources.json"
    rows = json.loads(file.read_text())
    credentials = with_sources / "sources" / "late.json"
    file.write_text(json.dumps({**rows, "late": {"team": "default"}}))
    await door.stack.refresh_sources()
    kept = credentials.read_text()
    async with publisher(credentials) as late:
        await late.say("cancel_requested", "x", job="none")
        assert [f.field for f in (await late.told("x")).faults] == ["job"]
        file.write_text(json.dumps(rows))
        await door.stack.refresh_sources()
        assert not credentials.exists()
        await until("it is put out", lambda: not late.client.is_connected)
    credentials.write_text(kept)
    with pytest.raises(NatsError, match="Authorization"):
        async with publisher(credentials):
            pass
    credentials.unlink()
