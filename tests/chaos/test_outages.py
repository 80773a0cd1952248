"""Servers go away under running jobs: ranks are untouched, all jobs end well."""

import signal
from pathlib import Path

import pytest

from trainmaster.core.facts import MemberStarted
from trainmaster.core.ids import MemberKey
from trainmaster.core.record import JobState
from trainmaster.runtime.clock import pause
from trainmaster.testkit.cluster import Cluster, until

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.timeout(600),
    pytest.mark.asyncio(loop_scope="module"),
]

JOBS, OUTAGE_SECONDS = 20, 5.0


def a_runner(running: Cluster, key: str, tmp_path: Path, *, until_file: Path) -> str:
    """Submit a job that runs until a file is there and then exits 0."""
    tmp_path.chmod(0o777)
    key = f"{tmp_path.name}-{key}"[-60:]
    wait = f"while [ ! -e {until_file} ]; do sleep 0.1; done"
    return running.submit(
        key,
        command=["/bin/sh", "-c", wait],
        accelerators_per_node=1,
        work_directory=str(tmp_path),
        output_directory=str(tmp_path / key),
        stop_grace=1,
    )


async def all_running(running: Cluster, jobs: list[str]) -> None:
    for job in jobs:
        await running.reaches(job, JobState.RUNNING, seconds=60)


async def pids_of(running: Cluster, jobs: list[str]) -> set[int]:
    entries = await running.entries()
    return {
        pid
        for entry in entries
        if isinstance(entry.event, MemberStarted)
        and isinstance(entry.key, MemberKey)
        and entry.key.job in jobs
        for pid in entry.event.pids
    }


def alive(pids: set[int]) -> set[int]:
    return {pid for pid in pids if Path(f"/proc/{pid}").exists()}


async def both_out(running: Cluster, first: str, second: str) -> None:
    """Kill two servers one after the other and bring them back after a while."""
    servers = {"nats": running.stack.nats, "postgres": running.stack.postgres}
    for name in (first, second):
        await servers[name].kill()
    await pause(OUTAGE_SECONDS)  # the outage itself, not a wait for something
    for name in (first, second):
        await servers[name].start()


@pytest.mark.parametrize(
    ("first", "second"), [("nats", "postgres"), ("postgres", "nats")]
)
async def test_both_servers_killed_under_twenty_jobs(
    running: Cluster, tmp_path: Path, first: str, second: str
):
    go = tmp_path / "go"
    jobs = [a_runner(running, f"j{i}", tmp_path, until_file=go) for i in range(JOBS)]
    await all_running(running, jobs)
    pids = await pids_of(running, jobs)
    assert len(pids) == JOBS
    await both_out(running, first, second)
    await until("all ready again", running.all_ready)
    assert alive(pids) == pids, "ranks are untouched"
    go.touch()
    assert [await running.final(job) for job in jobs] == [JobState.SUCCEEDED] * JOBS
    assert await running.broken_rules(accepted=jobs, settled=False) == []


async def test_an_emptied_assign_kills_nothing(running: Cluster, tmp_path: Path):
    go = tmp_path / "go"
    jobs = [a_runner(running, f"j{i}", tmp_path, until_file=go) for i in range(3)]
    await all_running(running, jobs)
    pids = await pids_of(running, jobs)
    log = await running.log()
    await log.bus.ask_api("STREAM.PURGE.ASSIGN", {})
    running.kill("agent-n1")
    running.start_agent("n1")
    beats = await log.last("STATUS", ["tm.status.node.local.n1"])
    await until(
        "the agent is back",
        lambda: _newer(running, beats),
    )
    assert alive(pids) == pids
    go.touch()
    assert [await running.final(job) for job in jobs] == [JobState.SUCCEEDED] * 3


async def _newer(running: Cluster, beats: int) -> bool:
    last = await (await running.log()).last("STATUS", ["tm.status.node.local.n1"])
    return last > beats


async def test_a_frozen_scheduler_with_a_plan_in_hand_is_refused(
    running: Cluster, tmp_path: Path
):
    """It is stopped before it appends; its standby plans; then it goes on."""
    running.kill("scheduler")
    running.start_service("scheduler", failpoints="scheduler.before_append=stop@1")
    await until("ready", lambda: running.is_ready("scheduler"))
    go = tmp_path / "go"
    jobs = [
        running.submit(
            f"frozen-{i}",
            command=["/bin/sh", "-c", f"while [ ! -e {go} ]; do sleep 0.1; done"],
            accelerators_per_node=10,
            ranks_per_node=1,
            work_directory=str(tmp_path),
            output_directory=str(tmp_path / f"o{i}"),
        )
        for i in range(3)
    ]
    running.start_service("scheduler", copy="-standby")
    placed = await until("two are placed", lambda: _placed(running, jobs))
    assert len(placed) == 2, "two nodes of ten accelerators"
    await pause(20 - OUTAGE_SECONDS)  # frozen for a long while
    running.signal("scheduler", signal.SIGCONT)
    go.touch()
    assert [await running.final(job) for job in jobs] == [JobState.SUCCEEDED] * 3
    assert await running.broken_rules(accepted=jobs, settled=False) == []
    running.kill("scheduler-standby")
    await until("the one that was frozen leads again", running.all_ready)


async def _placed(running: Cluster, jobs: list[str]) -> list[str]:
    live = [job for job in jobs if (await running.job(job)).attempt]
    return live if len(live) > 1 else []


async def test_dropped_projections_are_rebuilt_under_running_jobs(
    running: Cluster, tmp_path: Path
):
    import asyncpg

    go = tmp_path / "go"
    jobs = [a_runner(running, f"j{i}", tmp_path, until_file=go) for i in range(4)]
    await all_running(running, jobs)
    services = ("scheduler", "launcher", "reaper", "submission", "checkpoint-manager")
    for name in services:
        running.kill(name)
    dsn = running.stack.postgres.superuser_dsn("trainmaster")
    connection = await asyncpg.connect(dsn)
    for name in services:
        schema = await connection.fetchval(
            "select nspname from pg_namespace where nspname ~ $1",
            f"^{name.replace('-', '_')}_v[0-9]+$",
        )
        await connection.execute(f"drop schema {schema} cascade")
    await connection.close()
    for name in services:
        running.start_service(name)
    await until("all ready again", running.all_ready)
    go.touch()
    assert [await running.final(job) for job in jobs] == [JobState.SUCCEEDED] * 4
    assert await running.broken_rules(accepted=jobs, settled=False) == []
