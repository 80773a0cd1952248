"""Events per second through one real service: folded, decided, appended, read back.

The scheduler reads N `submitted` of jobs that need no accelerator, places all of them
and reads its placements back. Real nats-server (`sync_interval: always`) and PostgreSQL
on the same machine, envelope and models included.
"""

import asyncio
import statistics
import time
from dataclasses import replace

import uvloop

from bench.embedded import data_folder, remove
from bench.report import Figure, report, spread
from trainmaster.core.decision import Write
from trainmaster.core.events import Submitted
from trainmaster.core.facts import Capacity, NodeRegistered
from trainmaster.core.ids import JobId, JobKey, NodeKey
from trainmaster.core.record import JobState
from trainmaster.core.spec import JobSpec
from trainmaster.runtime.heads import Heads
from trainmaster.runtime.service import Running, collect_garbage_seldom, open_env
from trainmaster.runtime.stack import Options, Stack
from trainmaster.scheduler.app import build

JOBS, ROUNDS, NODES = 6000, 3, 60


async def _round() -> float:
    data = data_folder()
    stack = Stack(Options(data=data))
    await stack.start()
    try:
        return await _placed_per_second(stack)
    finally:
        await stack.stop()
        remove(data)


async def _placed_per_second(stack: Stack) -> float:
    monitor = await open_env("monitor", stack.settings("monitor", port=0))
    submission = await open_env("submission", stack.settings("submission", port=0))
    env = await open_env("scheduler", stack.settings("scheduler", port=0))
    nodes = [
        (
            Write(
                key=NodeKey("local", f"n{i}"),
                event=NodeRegistered(capacity=Capacity(cpus=JOBS)),
            ),
        )
        for i in range(NODES)
    ]
    jobs = [
        (
            Write(
                key=JobKey("default", JobId(f"J{i:06d}")),
                event=Submitted(spec=JobSpec(name="bench", command=("true",))),
            ),
        )
        for i in range(JOBS)
    ]
    for env_, groups in ((monitor, nodes), (submission, jobs)):
        if not (await env_.log.append(groups, Heads())).whole:
            raise SystemExit("the log was not empty")
    running = Running(env, replace(build(env), effects=()))
    task = asyncio.create_task(running.run())
    began = time.perf_counter()
    while env.loop is None or env.loop.state.jobs.count(JobState.PLACED) < JOBS:
        await asyncio.sleep(0.001)  # noqa: TID251
        if time.perf_counter() - began > 60:
            raise SystemExit("not all jobs were placed within 60 s")
    elapsed = time.perf_counter() - began
    task.cancel()
    await asyncio.wait([task])
    for each in (monitor, submission, env):
        await each.bus.close()
    return JOBS / elapsed


def main() -> None:
    """Measure a few rounds."""
    collect_garbage_seldom()
    placed = [uvloop.run(_round()) for _ in range(ROUNDS)]
    both = [
        3 * p for p in placed
    ]  # each job: submitted and placed folded, one appended
    report(
        "events",
        [
            Figure(
                name="events_folded_and_appended",
                value=statistics.median(both),
                unit="/s",
                budget="> 10,000",
                spread=spread(both),
            ),
            Figure(
                name="placements_appended",
                value=statistics.median(placed),
                unit="/s",
                spread=spread(placed),
            ),
        ],
        method=f"{JOBS} jobs through the scheduler, {ROUNDS} rounds; per job two "
        "events folded and one appended; saving rows included",
    )


if __name__ == "__main__":
    main()
