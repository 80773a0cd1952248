"""Files are looked at as the job's user, in a process of that user if need be."""

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.unit.launcher.test_checkpoints import save

from trainmaster.core.ids import JobId
from trainmaster.core.messages import AsideReply, AsideRequest, ScanReply, ScanRequest
from trainmaster.launcher.agent.answers import ASIDE, EXAMINE, SCAN
from trainmaster.launcher.agent.hands import (
    NO_ID,
    CannotBecomeError,
    Hands,
    WorkerDiedError,
)
from trainmaster.launcher.agent.preflight import Examination, Examined
from trainmaster.launcher.backends.model import (
    AttemptKey,
    JobUser,
    RankKey,
    RankSpec,
    SpawnFailed,
)
from trainmaster.launcher.backends.process import ProcessBackend, rank_request

pytestmark = pytest.mark.unit

ADA = JobUser(uid=54321, gid=54321)
needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can act for another user"
)


@pytest.fixture
async def hands() -> AsyncIterator[Hands]:
    hands = Hands(uid=os.geteuid())
    yield hands
    await hands.close()


async def scan(hands: Hands, user: JobUser | None, directory: Path) -> ScanReply:
    request = ScanRequest(directory=str(directory))
    return ScanReply.from_json(await hands.ask(user, SCAN, request.to_json()))


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A directory that others can reach: pytest's own are for one user."""
    for path in (tmp_path, *tmp_path.parents):
        if path.stat().st_uid == os.geteuid() and path != Path(path.anchor):
            path.chmod(path.stat().st_mode | 0o055)
    return tmp_path


async def test_our_own_files_need_no_other_process(hands: Hands, tmp_path: Path):
    save(tmp_path, 7)
    reply = await scan(hands, None, tmp_path)
    assert [(c.step, c.problem) for c in reply.checkpoints] == [(7, "")]


@needs_root
async def test_a_user_sees_what_it_may_see_and_no_more(hands: Hands, shared: Path):
    save(shared / "open", 7)
    save(shared / "secret", 8)
    (shared / "secret").chmod(0o700)
    (found,) = (await scan(hands, ADA, shared / "open")).checkpoints
    assert found.problem == ""
    reply = await scan(hands, ADA, shared / "secret")
    assert "Permission denied" in reply.error
    assert reply.checkpoints == ()


@needs_root
async def test_directories_are_made_by_the_user_and_belong_to_it(
    hands: Hands, shared: Path
):
    home = shared / "home"
    home.mkdir()
    os.chown(home, ADA.uid, ADA.gid)
    request = Examination(
        command=("sh",),
        search_path="/usr/bin:/bin",
        work_directory=str(shared),
        directories={"output_directory": str(home / "runs" / "1")},
    )
    seen = Examined.from_json(await hands.ask(ADA, EXAMINE, request.to_json()))
    assert seen.failure is None
    assert (home / "runs" / "1").stat().st_uid == ADA.uid
    forbidden = {"output_directory": str(shared / "forbidden")}
    request = request.model_copy(update={"directories": forbidden})
    seen = Examined.from_json(await hands.ask(ADA, EXAMINE, request.to_json()))
    assert seen.failure is not None
    assert "Permission denied" in seen.failure.seen
    assert not (shared / "forbidden").exists()


@needs_root
async def test_a_worker_that_dies_says_so_and_is_replaced(hands: Hands, shared: Path):
    save(shared, 7)
    assert (await scan(hands, ADA, shared)).checkpoints
    with pytest.raises(WorkerDiedError, match="uid 54321"):
        await hands.ask(ADA, "a question nobody knows", b"")
    assert (await scan(hands, ADA, shared)).checkpoints


async def test_without_root_nobody_else_is_acted_for(tmp_path: Path):
    with pytest.raises(CannotBecomeError, match="cannot act for uid 54321"):
        await scan(Hands(uid=1000), ADA, tmp_path)


@needs_root
@pytest.mark.parametrize(
    "user", [JobUser(uid=NO_ID, gid=1), JobUser(uid=54321, gid=NO_ID)]
)
async def test_the_id_that_means_no_change_never_leaves_anyone_root(
    hands: Hands, tmp_path: Path, user: JobUser
):
    with pytest.raises(CannotBecomeError):
        await scan(hands, user, tmp_path)
    spec = RankSpec(
        key=RankKey(attempt=AttemptKey(job=JobId("j"), number=1), rank=0),
        argv=("true",),
        environment={},
        work_directory=tmp_path,
        log=tmp_path / "log",
        user=user,
    )
    backend = ProcessBackend(root=tmp_path / "node", python=sys.executable)
    outcome = await backend.spawn(rank_request(spec, token="t"))
    assert isinstance(outcome, SpawnFailed)
    assert outcome.step == "user"
    worker = (sys.executable, "-m", "trainmaster.launcher.agent.worker")
    ended = await asyncio.create_subprocess_exec(
        *worker, str(user.uid), str(user.gid), stdin=DEVNULL, stderr=PIPE
    )
    _, errors = await ended.communicate()
    assert b"nobody has uid" in errors


async def test_moving_aside_answers_with_an_error_instead_of_raising(
    hands: Hands, tmp_path: Path
):
    request = AsideRequest(directory=str(tmp_path), paths=("/etc",))
    reply = AsideReply.from_json(await hands.ask(None, ASIDE, request.to_json()))
    assert "nothing was moved" in reply.error
