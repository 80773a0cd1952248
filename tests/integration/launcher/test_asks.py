"""A node answers small questions about its files, over the real bus."""

from pathlib import Path

import pytest
from tests.integration.launcher.conftest import NODE, Desk, eventually
from tests.unit.launcher.test_checkpoints import save

from trainmaster.core import subjects
from trainmaster.core.errors import UnreachableError
from trainmaster.core.messages import AsideReply, AsideRequest, ScanReply, ScanRequest
from trainmaster.core.spec import RunAs

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("inside")]


async def ask(desk: Desk, question: str, body: bytes) -> bytes:
    """Ask the node, as soon as it listens."""

    async def once() -> bytes | None:
        try:
            subject = subjects.ask(NODE, question)
            return (await desk.bus.request(subject, body, seconds=5)).data
        except UnreachableError:
            return None

    return await eventually(once, "an answer")


async def scan(desk: Desk, directory: Path) -> ScanReply:
    request = ScanRequest(directory=str(directory))
    return ScanReply.from_json(await ask(desk, "scan", request.to_json()))


async def test_a_scan_tells_whole_checkpoints_from_torn_ones(
    desk: Desk, tmp_path: Path
):
    save(tmp_path / "c", 100)
    torn = save(tmp_path / "c", 200)
    (torn / "optimizer.npy").write_bytes(b"o" * 1024)
    whole, broken = (await scan(desk, tmp_path / "c")).checkpoints
    assert (whole.step, whole.problem) == (100, "")
    assert whole.digest
    assert broken.problem == "optimizer.npy has 1,024 of 4,096 bytes"
    assert broken.digest == ""


async def test_what_is_torn_goes_aside_and_is_seen_no_more(desk: Desk, tmp_path: Path):
    torn = save(tmp_path / "c", 200)
    request = AsideRequest(directory=str(tmp_path / "c"), paths=(str(torn),))
    for _ in range(2):  # asked again, the answer is the same
        reply = AsideReply.from_json(await ask(desk, "aside", request.to_json()))
        assert reply.error == ""
        assert [m.moved_to for m in reply.moved] == [
            str(tmp_path / "c" / ".tm-aside" / torn.name)
        ]
    assert (await scan(desk, tmp_path / "c")).checkpoints == ()


async def test_what_cannot_be_answered_says_why(desk: Desk, tmp_path: Path):
    (tmp_path / "file").write_text("")
    assert "Not a directory" in (await scan(desk, tmp_path / "file")).error
    reply = ScanReply.from_json(await ask(desk, "scan", b'{"directory": 3}'))
    assert "directory" in reply.error
    request = ScanRequest(directory="/", user=RunAs(uid=4294967295, gid=1))
    assert ScanReply.from_json(await ask(desk, "scan", request.to_json())).error
