"""All services are killed at each of their failpoints under running jobs.

The failpoint kills the process itself (SIGKILL) at the named step, some turns after it
was armed; it is then started again without one. Nothing is lost, nothing is doubled.
"""

import asyncio
from pathlib import Path

import httpx
import pytest
from tests.chaos.trainings import Trainings

from trainmaster.core.record import JobState
from trainmaster.runtime.clock import pause
from trainmaster.testkit.cluster import IMPATIENT, Cluster, until

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.timeout(240),
    pytest.mark.asyncio(loop_scope="module"),
]

# A commit comes every turn, also an idle one: the later ones have work in hand.
FAILPOINTS = {
    "after_fold": 8,
    "before_append": 2,
    "after_append": 2,
    "before_commit": 8,
    "after_commit": 3,
}
APPENDING = ("submission", "scheduler", "launcher", "checkpoint-manager", "reaper")
JOBS = 6


@pytest.mark.parametrize("failpoint", FAILPOINTS)
async def test_services_killed_at_a_failpoint_lose_and_double_nothing(
    running: Cluster, failpoint: str, shared_folder: Path
):
    for service in APPENDING:
        running.kill(service)
        armed = f"{service}.{failpoint}=kill@{FAILPOINTS[failpoint]}"
        running.start_service(service, failpoints=armed)
    restarts = asyncio.create_task(_start_again_whoever_dies(running))
    trainings = Trainings(running=running, folder=shared_folder)
    for number in range(JOBS):
        await _accepted(trainings, number)
    await restarts
    await trainings.check_all_well()


async def _start_again_whoever_dies(running: Cluster) -> None:
    """Wait until every service has died once, and start each again at once."""

    async def again(service: str) -> None:
        await running.died(service)
        running.start_service(service)

    await asyncio.gather(*map(again, APPENDING))


async def _accepted(trainings: Trainings, number: int) -> None:
    """Submit a job until it is accepted; its key makes asking again safe."""

    def job() -> str:
        try:
            return trainings.submit(number)
        except httpx.HTTPError:
            return ""  # it was killed while it was asked, or is not up again yet

    await until(f"job {number} is accepted", job)


async def test_a_launcher_that_is_away_fails_nobody(
    running: Cluster, shared_folder: Path
):
    """It dies with an end on the log and no `close` ordered, so no proof can come."""
    running.kill("launcher")
    # order the start, say that it runs, say that it ended
    running.start_service("launcher", failpoints="launcher.after_append=kill@3")
    go = shared_folder / "go"
    fails_once = f"while [ ! -e {go} ]; do sleep 0.05; done; exit $((2 - TM_ATTEMPT))"
    job = running.submit(
        shared_folder.name,
        command=["/bin/sh", "-c", fails_once],
        work_directory=str(shared_folder),
        output_directory=str(shared_folder / "out"),
    )
    await running.reaches(job, JobState.RUNNING)
    go.touch()
    await running.died("launcher")
    await running.reaches(job, JobState.SETTLING)
    # the outage itself, not a wait for something
    await pause(float(IMPATIENT["TM_REAPER_PROOF_SECONDS"]) + 2.0)
    assert (await running.job(job)).state == JobState.SETTLING
    running.start_service("launcher")
    assert await running.final(job) == JobState.SUCCEEDED
    assert (await running.job(job)).attempt == 2
