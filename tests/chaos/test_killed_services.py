"""Each service is killed at each of its failpoints under running jobs; nothing is lost.

The failpoint kills the process itself (SIGKILL) at the named step, some turns after it
was armed; it is then started again without one.
"""

from pathlib import Path

import pytest

from trainmaster.testkit.cluster import Cluster, until

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.timeout(600),
    pytest.mark.asyncio(loop_scope="module"),
]

FAILPOINTS = ("before_append", "after_append", "before_commit", "after_commit")
APPENDING = ("submission", "scheduler", "launcher", "checkpoint-manager", "reaper")


def a_job(running: Cluster, key: str, tmp_path: Path, *, fails: bool) -> str:
    """Submit a job of two nodes that saves once; one that fails does so once."""
    save = Path(__file__).parent / "save.py"
    return running.submit(
        key,
        command=["/usr/bin/env", "python3", str(save), "fail" if fails else "pass"],
        nodes=2,
        work_directory=str(tmp_path),
        output_directory=str(tmp_path / key / "out"),
        checkpoint={"directory": str(tmp_path / key / "ckpt")},
        success={"step": 2},
        stop_grace=1,
    )


async def all_over(running: Cluster, jobs: list[str]) -> list[str]:
    return [await running.final(job, seconds=90) for job in jobs]


@pytest.mark.parametrize("service", APPENDING)
async def test_a_service_killed_at_every_failpoint_loses_and_doubles_nothing(
    running: Cluster, service: str, tmp_path: Path
):
    tmp_path.chmod(0o777)
    jobs: list[str] = []
    for number, failpoint in enumerate(FAILPOINTS):
        running.kill(service)
        running.start_service(service, failpoints=f"{service}.{failpoint}=kill@2")
        if service == "submission":
            await until("ready", lambda: running.is_ready(service))
        jobs += await _submitted_across_a_crash(running, service, number, tmp_path)
    assert await all_over(running, jobs) == ["succeeded"] * len(jobs)
    assert await running.broken_rules(accepted=jobs, settled=False) == []


async def _submitted_across_a_crash(
    running: Cluster, service: str, number: int, tmp_path: Path
) -> list[str]:
    """Submit jobs while the service dies and comes back; keys make them safe."""
    keys = [f"{service}-{number}-{i}" for i in range(2)]
    jobs: list[str] = []
    for key in keys:
        fails = key.endswith("0")
        try:
            jobs.append(a_job(running, key, tmp_path, fails=fails))
        except Exception as error:  # noqa: BLE001, PERF203 died while it was asked
            assert service == "submission", error
    await running.died(service)
    running.start_service(service)
    await until("ready again", lambda: running.is_ready(service))
    if len(jobs) < len(keys):
        jobs = [a_job(running, key, tmp_path, fails=key.endswith("0")) for key in keys]
    return jobs
