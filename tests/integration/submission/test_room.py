"""How full the log is, is asked of the log itself, with submission's own rights."""

import pytest

from trainmaster.core import subjects
from trainmaster.runtime.provision import deploy_folder, read_streams
from trainmaster.runtime.service import open_env
from trainmaster.runtime.stack import Stack
from trainmaster.submission.requests import ROOM_FACT, Room
from trainmaster.submission.room import RoomWatch

pytestmark = pytest.mark.integration


async def bound(stack: Stack, *, bytes_most: int) -> None:
    bus = await stack.provisioner()
    config = read_streams(deploy_folder())[subjects.JOBS] | {"max_bytes": bytes_most}
    answer = await bus.ask_api(f"STREAM.UPDATE.{subjects.JOBS}", config)
    assert "error" not in answer
    await bus.close()


async def fill(stack: Stack) -> None:
    env = await open_env("submission", stack.settings("submission", port=0))
    for number in range(10):
        subject = f"tm.job.default.j{number}.submitted"
        await env.bus.request(subject, b" " * 1000, seconds=5.0)
    await env.bus.close()
    await env.database.close()


async def test_a_log_that_fills_up_is_noticed_and_one_that_has_room_again(stack: Stack):
    env = await open_env("submission", stack.settings("submission", port=0))
    watch = RoomWatch(env)
    try:
        await watch.look()
        assert ROOM_FACT not in env.facts.current()
        await fill(stack)
        await bound(stack, bytes_most=12_000)
        await watch.look()
        room = env.facts.current()[ROOM_FACT]
        assert isinstance(room, Room)
        assert room.full
        assert room.most_bytes == 12_000
        await bound(stack, bytes_most=1_000_000)
        await watch.look()
        assert not env.facts.current()[ROOM_FACT].full
    finally:
        await env.bus.close()
        await env.database.close()
