"""Tokens across services: given out by submission, honoured and refused by the console.

Each service is a process with its own rights; the console asks submission nothing.
"""

import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from trainmaster.core.access import RequestRefused, TokenIssued
from trainmaster.testkit.cluster import Cluster, until

pytestmark = pytest.mark.integration

HEARD_SECONDS = 1.0
TOKEN = {"name": "ci", "team": "default", "role": "submitter"}
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
    for name in ("submission", "console"):
        await started(cluster, name)
    yield cluster
    await cluster.stop()


async def started(cluster: Cluster, name: str) -> None:
    cluster.start_service(name)
    await until(f"{name} is ready", lambda: cluster.is_ready(name))


def asked(cluster: Cluster, method: str, path: str, secret: str, **how: Any) -> int:
    """Ask with a token of one's own; the admin's is what the cluster asks with."""
    headers = {"Authorization": f"Bearer {secret}"}
    return cluster.ask(method, path, headers=headers, **how).status_code


def given(cluster: Cluster) -> dict[str, Any]:
    answer = cluster.ask("POST", "/tokens", json=TOKEN)
    assert answer.status_code == 201, answer.text
    told: dict[str, Any] = answer.json()
    return told


async def test_a_token_opens_both_services_until_it_is_revoked_and_then_neither(
    cluster: Cluster,
):
    token = given(cluster)
    secret = token["token"]
    assert asked(cluster, "POST", "/jobs", secret, json=JOB) == 201
    await until(
        "the console knows of it",
        lambda: asked(cluster, "GET", "/jobs", secret) == HTTPStatus.OK,
        seconds=HEARD_SECONDS,
    )
    assert asked(cluster, "GET", "/tokens", secret) == 403
    path = f"/tokens/{token['id']}/revoke"
    assert cluster.ask("POST", path, json={"reason": "leaked"}).json()["changed"]
    begun = time.monotonic()
    assert asked(cluster, "POST", "/jobs", secret, json=JOB) == 401
    await until(
        "the console refuses it",
        lambda: asked(cluster, "GET", "/jobs", secret) == HTTPStatus.UNAUTHORIZED,
        seconds=HEARD_SECONDS,
    )
    assert time.monotonic() < begun + HEARD_SECONDS
    assert not cluster.ask("POST", path).json()["changed"]


async def test_tokens_and_revocations_outlive_a_kill_of_every_service(
    cluster: Cluster,
):
    kept, gone = (
        given(cluster),
        cluster.ask("POST", "/tokens", json=TOKEN | {"name": "gone"}).json(),
    )
    cluster.ask("POST", f"/tokens/{gone['id']}/revoke").raise_for_status()
    for name in ("submission", "console"):
        cluster.kill(name)
        await started(cluster, name)
    for method, path in (("POST", "/jobs/validate"), ("GET", "/jobs")):
        how = {"json": JOB} if method == "POST" else {}
        assert asked(cluster, method, path, kept["token"], **how) == 200
        assert asked(cluster, method, path, gone["token"], **how) == 401


async def test_no_stream_and_no_log_file_holds_a_secret(cluster: Cluster, data: Path):
    secret = given(cluster)["token"]
    assert asked(cluster, "POST", "/pools", secret, json={"pool": "big"}) == 403
    assert asked(cluster, "POST", "/jobs", "tm_guess", json=JOB) == 401

    async def refusals() -> list[str]:
        found = await (await cluster.log()).entries("AUDIT", "tm.audit.>")
        told = [str(each) for each in found if RequestRefused.__name__ in str(each)]
        return told if len(told) > 1 else []

    found = await until("both are on the log", refusals)
    assert "tm_guess" not in str(found)
    entries = await cluster.entries()
    assert any(isinstance(entry.event, TokenIssued) for entry in entries)
    assert secret not in str(entries)
    assert holding(data, cluster.stack.secret("nats-submission"))  # it can find one
    assert holding(data, secret) == []


def holding(data: Path, secret: str) -> list[Path]:
    """Name the files below a folder that hold a secret."""
    files = (path for path in data.rglob("*") if path.is_file())
    return [path for path in files if secret.encode() in path.read_bytes()]
