"""Submission alone, on real servers, killed where it hurts."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from trainmaster.core.events import Submitted
from trainmaster.core.facts import PoolCreated, TeamCreated
from trainmaster.core.ids import JobKey
from trainmaster.testkit.cluster import Cluster, until

pytestmark = pytest.mark.integration

NAME = "submission"
JOB = {"name": "lm", "command": "python train.py", "work_directory": "/there"}


@pytest.fixture
def data() -> Iterator[Path]:
    """Not below pytest's own folder: for root, that one is closed to other users."""
    data = Path(tempfile.mkdtemp(prefix="tm-"))
    data.chmod(0o711)
    yield data
    shutil.rmtree(data)


@pytest.fixture
async def cluster(data: Path) -> AsyncIterator[Cluster]:
    cluster = Cluster(data)
    await cluster.stack.start()
    await started(cluster)
    yield cluster
    await cluster.stop()


async def started(cluster: Cluster, *, failpoints: str = "") -> None:
    cluster.start_service(NAME, failpoints=failpoints)
    await until("submission is ready", lambda: cluster.is_ready(NAME))


def submit(cluster: Cluster, key: str) -> httpx.Response:
    headers = {"Idempotency-Key": key}
    return cluster.ask("POST", "/jobs", json=JOB, headers=headers)


async def submitted(cluster: Cluster, wanted: str) -> list[str]:
    """Name the jobs on the log that were submitted with a key."""
    jobs: list[str] = []
    for entry in await cluster.entries():
        match entry.key, entry.event:
            case JobKey(job=job), Submitted(key=key) if key == wanted:
                jobs.append(job)
            case _:
                pass
    return jobs


@pytest.mark.parametrize("point", ["before_append", "after_append"])
async def test_a_key_means_one_job_wherever_the_service_is_killed(
    cluster: Cluster, point: str
):
    cluster.kill(NAME)
    await started(cluster, failpoints=f"{NAME}.{point}=kill")
    with pytest.raises(httpx.TransportError):
        submit(cluster, "k")
    await cluster.died(NAME)
    await started(cluster)
    first = submit(cluster, "k")
    again = submit(cluster, "k")
    assert first.is_success
    assert again.status_code == 200
    assert again.json() == first.json()
    assert await submitted(cluster, "k") == [first.json()["job"]]


async def test_a_key_at_once_and_after_a_kill_means_one_job(cluster: Cluster):
    answers = await asyncio.gather(
        *(asyncio.to_thread(submit, cluster, "k") for _ in range(8))
    )
    assert sorted(answer.status_code for answer in answers) == [200] * 7 + [201]
    cluster.kill(NAME)
    await started(cluster)
    answers.append(submit(cluster, "k"))
    assert {answer.text for answer in answers} == {answers[0].text}
    assert await submitted(cluster, "k") == [answers[0].json()["job"]]


async def test_the_first_team_and_pool_are_founded_once(cluster: Cluster):
    cluster.kill(NAME)
    await started(cluster)
    submit(cluster, "k").raise_for_status()
    kinds = [type(entry.event) for entry in await cluster.entries()]
    assert kinds.count(TeamCreated) == kinds.count(PoolCreated) == 1


async def test_while_the_log_is_gone_nothing_is_accepted_and_the_reason_is_said(
    cluster: Cluster,
):
    await cluster.stack.nats.kill()
    await until("it has noticed", lambda: not cluster.is_ready(NAME))
    refused = submit(cluster, "k")
    assert refused.status_code == 503
    assert cluster.stack.nats.url in refused.json()["detail"]
    await cluster.stack.nats.start()
    await until("it is back", lambda: cluster.is_ready(NAME))
    accepted = submit(cluster, "k")
    assert accepted.status_code == 201
    assert await submitted(cluster, "k") == [accepted.json()["job"]]
