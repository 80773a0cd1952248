"""Services are killed inside their effects: orders, reasons, archive, disks of nodes.

What an effect had done is found again by whoever comes next, and is neither done twice
nor forgotten. Each service dies several times, under jobs.
"""

from pathlib import Path

import asyncpg
import pytest
from tests.chaos.deaths import death, start
from tests.chaos.stages import events_of
from tests.chaos.trainings import Trainings

from trainmaster.core.events import CheckpointChosen
from trainmaster.core.messages import Assignment
from trainmaster.core.notes import CheckpointRejected, CheckpointVerified
from trainmaster.testkit.cluster import Cluster, until

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.timeout(240),
    pytest.mark.asyncio(loop_scope="module"),
]


def half(service: str, done: int, what: str = "publish") -> str:
    """Arm a death with so many done, and the next one begun and not sent."""
    hold, kill = f"before_{what}=hold@{done + 1}", f"after_{what}=kill@{done}"
    return f"{service}.{hold},{service}.{kill}"


# ------------------------------------------------------------------------ last values


@pytest.mark.parametrize(
    ("published", "orders"),
    [
        (1, ["prepare"]),
        (2, ["prepare", "prepare"]),
        (3, ["prepare", "start"]),
        (5, ["close", "start"]),
    ],
)
async def test_a_launcher_killed_between_the_orders_of_a_gang_gives_the_rest(
    running: Cluster, shared_folder: Path, published: int, orders: list[str]
):
    trainings = Trainings(running=running, folder=shared_folder, how=("pass",))
    running.kill("launcher")
    point = half("launcher", published)
    start(running, "launcher", failpoints=point)
    job = trainings.submit(0)
    await death(running, "launcher", point)
    log = await running.log()
    given = [
        Assignment.from_json(raw.body).order
        async for raw in log.last_values("ASSIGN", f"tm.assign.*.*.{job}")
    ]
    assert sorted(given) == orders, "between two orders, and nowhere else"
    start(running, "launcher")
    await trainings.check_all_well()
    assert (await running.job(job)).attempt == 1


async def test_a_launcher_killed_at_every_step_of_its_orders_loses_and_doubles_nothing(
    running: Cluster, shared_folder: Path
):
    trainings = Trainings(running=running, folder=shared_folder)
    points = (
        "launcher.before_publish=kill@1",
        "launcher.after_publish=kill@1",
        "launcher.after_publish=kill@2",
        "launcher.before_publish=kill@4",
        half("launcher", 1, "purge"),
        "launcher.after_purge=kill@2",
        "launcher.after_publish=kill@3",
    )
    await trainings.under_deaths("launcher", points)
    await trainings.check_all_well()
    await until("no order is left", lambda: _nothing_on(running, "ASSIGN", "assign"))


async def test_a_scheduler_killed_while_it_says_why_jobs_wait_says_the_rest(
    running: Cluster, shared_folder: Path
):
    whole_nodes: dict[str, object] = {"accelerators_per_node": 10, "ranks_per_node": 1}
    trainings = Trainings(
        running=running, folder=shared_folder, how=("pass",), spec=whole_nodes
    )
    points = (
        "scheduler.before_publish=kill@1",
        "scheduler.after_publish=kill@1",
        half("scheduler", 1),
        "scheduler.before_purge=kill@1",
        "scheduler.after_purge=kill@1",
    )
    await trainings.under_deaths("scheduler", points, together=4)
    await trainings.check_all_well()
    filter_ = "status.waiting"
    await until("no reason is left", lambda: _nothing_on(running, "STATUS", filter_))


async def _nothing_on(running: Cluster, stream: str, family: str) -> bool:
    return not await (await running.log()).last(stream, [f"tm.{family}.>"])


# ---------------------------------------------------------------------------- archive


@pytest.mark.parametrize("point", ["before_archive", "after_archive"])
async def test_a_reaper_killed_while_it_archives_keeps_every_event_once(
    running: Cluster, shared_folder: Path, point: str
):
    trainings = Trainings(running=running, folder=shared_folder)
    points = [f"reaper.{point}=kill@{turn}" for turn in (1, 1, 2)]
    await trainings.under_deaths("reaper", points)
    await trainings.check_all_well()
    for job in trainings.jobs.values():
        assert await _archived(running, job) == await _on_the_log(running, job)


async def test_half_an_archive_is_completed(running: Cluster, shared_folder: Path):
    trainings = Trainings(running=running, folder=shared_folder)
    running.kill("reaper")
    point = "reaper.after_archive=kill"
    start(running, "reaper", failpoints=point)
    job = trainings.submit(0)
    await death(running, "reaper", point)
    lost = "delete from reaper_truth.archive where job = $1 and seq % 2 = 0"
    await _sql(running, lost, job)
    assert 0 < len(await _archived(running, job)) < len(await _on_the_log(running, job))
    start(running, "reaper")
    await trainings.check_all_well()
    assert await _archived(running, job) == await _on_the_log(running, job)


async def _archived(running: Cluster, job: str) -> list[tuple[int, str]]:
    rows = await _sql(
        running,
        "select seq, id from reaper_truth.archive where job = $1 order by seq",
        job,
    )
    return [(row["seq"], row["id"]) for row in rows]


async def _on_the_log(running: Cluster, job: str) -> list[tuple[int, str]]:
    """List what the archive must hold: all but the word that it does."""
    log = await running.log()
    return sorted(
        [
            (raw.seq, raw.id)
            for family in ("job", "note")
            async for raw in log.history("JOBS", f"tm.{family}.default.{job}.>")
            if not raw.subject.endswith(".archived")
        ]
    )


async def _sql(running: Cluster, query: str, *values: object) -> list[asyncpg.Record]:
    dsn = running.stack.postgres.superuser_dsn("trainmaster")
    connection = await asyncpg.connect(dsn)
    try:
        return await connection.fetch(query, *values)
    finally:
        await connection.close()


# ----------------------------------------------------------------------- checkpoints


async def test_a_checkpoint_manager_killed_with_a_finding_in_hand_finds_it_again(
    running: Cluster, shared_folder: Path
):
    trainings = Trainings(running=running, folder=shared_folder, how=("fail",))
    name = "checkpoint-manager"
    points = (
        f"{name}.before_scan=kill@1",
        f"{name}.after_scan=kill@1",
        f"{name}.after_scan=kill@1",
        f"{name}.after_scan=kill@2",
        f"{name}.after_scan=kill@3",
    )
    await trainings.under_deaths(name, points)
    await trainings.check_all_well()
    for number, job in trainings.jobs.items():
        await _resumed_at_the_first_step(trainings, number)
        verified = await events_of(running, job, CheckpointVerified)
        assert {note.step for note in verified} >= {1}, "what it resumed from"


@pytest.mark.parametrize("point", ["before_aside", "after_aside"])
async def test_a_checkpoint_manager_killed_while_it_moves_what_is_torn_moves_it_once(
    running: Cluster, shared_folder: Path, point: str
):
    trainings = Trainings(running=running, folder=shared_folder, how=("tear",))
    name = "checkpoint-manager"
    await trainings.under_deaths(name, [f"{name}.{point}=kill@1"] * 3)
    await trainings.check_all_well()
    for number in trainings.jobs:
        await _resumed_at_the_first_step(trainings, number)
        aside = trainings.checkpoints(number) / ".tm-aside"
        assert [each.name for each in aside.iterdir()] == ["step-000002"]


@pytest.mark.parametrize(
    "point",
    [
        "before_aside",
        pytest.param(
            "after_aside",
            marks=pytest.mark.xfail(
                reason="what was moved is not seen by the next scan, so nobody says it",
                strict=True,
            ),
        ),
    ],
)
async def test_what_is_torn_is_said_though_the_one_who_saw_it_died(
    running: Cluster, shared_folder: Path, point: str
):
    trainings = Trainings(running=running, folder=shared_folder, how=("tear",))
    name = "checkpoint-manager"
    await trainings.one_for_each_death(name, [f"{name}.{point}=kill"])
    job = trainings.jobs[0]
    await trainings.check_all_well()
    rejected = await events_of(running, job, CheckpointRejected)
    assert [note.step for note in rejected] == [2]


async def _resumed_at_the_first_step(trainings: Trainings, number: int) -> None:
    """The choice was made once, and the ranks were told of it."""
    job = trainings.jobs[number]
    chosen = await events_of(trainings.running, job, CheckpointChosen)
    assert [each.restore and each.restore.step for each in chosen] == [1]
    again = {s.resumed for s in trainings.starts(number) if s.attempt > 1}
    assert again == {1}
