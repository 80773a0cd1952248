"""The monitor and the console are killed at each of their failpoints under jobs.

They decide no transition, so a job must not notice. Afterwards what they show is what
it was, and what it would be had they never died: nothing is found or shown twice.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from tests.chaos.deaths import death, start
from tests.chaos.trainings import Trainings

from trainmaster.core.facts import NodeFact, NodeLost, NodeRegistered
from trainmaster.core.notes import FindingRaised
from trainmaster.testkit.cluster import Cluster, until

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.timeout(240),
    pytest.mark.asyncio(loop_scope="module"),
]

LOOP = ("after_fold", "before_commit", "after_commit")
TURNS = {"after_fold": (2, 5, 9), "before_commit": (2, 5, 9), "after_commit": (1, 2, 3)}
Answers = Mapping[str, Any]


@pytest.mark.parametrize("point", LOOP)
async def test_a_console_killed_in_its_loop_gives_the_answers_of_one_that_was_not(
    running: Cluster, shared_folder: Path, point: str
):
    trainings = Trainings(running=running, folder=shared_folder)
    trainings.submit(0)
    await trainings.check_all_well()
    before = await answers(running, trainings)
    points = [f"console.{point}=kill@{turn}" for turn in TURNS[point]]
    await trainings.one_for_each_death("console", points)
    await trainings.check_all_well()
    after = await answers(running, trainings)
    assert {name: after[name] for name in before if name != "nodes"} == {
        name: before[name] for name in before if name != "nodes"
    }
    await _forget_all(running, "console")
    anew = await answers(running, trainings)
    assert _told_apart(after) == _told_apart(anew), "as if read for the first time"


@pytest.mark.parametrize("point", [*LOOP, "before_append", "after_append"])
async def test_a_monitor_killed_in_its_loop_finds_everything_once(
    running: Cluster, shared_folder: Path, point: str
):
    trainings = Trainings(running=running, folder=shared_folder, how=("fail",))
    trainings.submit(0)
    await trainings.check_all_well()
    await _is_remarked_on(running, trainings)
    first = trainings.jobs[0]
    await until("its last step is shown", lambda: _step(running, first) == 2)
    before, nodes = await answers(running, trainings), await node_facts(running)
    points = [f"monitor.{point}=kill@{turn}" for turn in TURNS.get(point, (1, 1, 1))]
    await trainings.one_for_each_death("monitor", points)
    await trainings.check_all_well()
    await _is_remarked_on(running, trainings)
    after = await answers(running, trainings)
    assert {name: after[name] for name in before} == before
    assert await node_facts(running) == nodes, "no node was lost or found again"


async def test_a_monitor_killed_while_it_says_how_far_jobs_are_says_the_rest(
    running: Cluster, shared_folder: Path
):
    trainings = Trainings(running=running, folder=shared_folder, how=("pass",))
    points = (
        "monitor.before_publish=kill@1",
        "monitor.after_publish=kill@1",
        "monitor.after_publish=kill@2",
    )
    await trainings.under_deaths("monitor", points)
    trainings.submit(len(trainings.jobs))
    await trainings.check_all_well()
    newest = trainings.jobs[len(trainings.jobs) - 1]
    await until("its last step is shown", lambda: _step(running, newest) == 2)


@pytest.mark.parametrize("point", ["before_append", "after_append"])
async def test_a_monitor_killed_while_it_speaks_of_a_node_says_it_once(
    running: Cluster, point: str
):
    known = len(await node_facts(running))
    armed = f"monitor.{point}=kill"
    running.kill("monitor")
    start(running, "monitor", failpoints=armed)
    await until("it listens", lambda: running.is_ready("monitor"))
    running.kill("agent-n2")
    await death(running, "monitor", armed)
    start(running, "monitor")
    await until("it is lost", lambda: _said(running, known, NodeLost))
    running.kill("monitor")
    start(running, "monitor", failpoints=armed)
    start(running, "agent-n2")
    await death(running, "monitor", armed)
    start(running, "monitor")
    await until("it is back", lambda: _said(running, known, NodeRegistered))
    await until("all ready again", running.all_ready)
    said = (await node_facts(running))[known:]
    assert [type(fact) for _, fact in said] == [NodeLost, NodeRegistered]
    assert {node for node, _ in said} == {"n2"}


async def answers(running: Cluster, trainings: Trainings) -> Answers:
    """Ask the console all that it says of some jobs, and of the nodes."""
    await until("all ready", running.all_ready)
    paths = ["/nodes"]
    for job in trainings.jobs.values():
        paths += [f"/jobs/{job}", f"/jobs/{job}/events", f"/jobs/{job}/logs"]
    found: dict[str, Any] = {}
    for path in paths:
        answer = running.ask("GET", path)
        answer.raise_for_status()
        found[path] = answer.text
    return found


def _told_apart(said: Answers) -> Answers:
    """Leave out in which order events of two streams came: a replay has another one."""
    return {
        name: _without_order(text) if name.endswith("/events") else text
        for name, text in said.items()
    }


def _without_order(events: str) -> list[str]:
    rows: list[dict[str, Any]] = json.loads(events)
    return sorted(json.dumps({**row, "seq": 0}, sort_keys=True) for row in rows)


async def node_facts(running: Cluster) -> list[tuple[str, NodeFact]]:
    """List what was said of nodes, in order."""
    return [
        (getattr(entry.key, "node", ""), entry.event)
        for entry in await running.entries()
        if isinstance(entry.event, NodeFact)
    ]


async def _said(running: Cluster, known: int, kind: type[NodeFact]) -> bool:
    facts = (await node_facts(running))[known:]
    return any(isinstance(fact, kind) for _, fact in facts)


async def _is_remarked_on(running: Cluster, trainings: Trainings) -> None:
    """Wait for a finding for each failed attempt; there must never be two."""
    failing = {trainings.jobs[number] for number in trainings.failing()}
    await until("all is found", lambda: _found(running, failing))
    found = await _findings(running, failing)
    assert len(set(found)) == len(found), found


async def _found(running: Cluster, failing: set[str]) -> bool:
    return {job for job, _ in await _findings(running, failing)} == failing


async def _findings(running: Cluster, jobs: set[str]) -> list[tuple[str, str]]:
    return [
        (job, entry.event.finding)
        for entry in await running.entries()
        if isinstance(entry.event, FindingRaised)
        and (job := getattr(entry.key, "job", "")) in jobs
    ]


def _step(running: Cluster, job: str) -> int:
    answer = running.ask("GET", f"/jobs/{job}")
    answer.raise_for_status()
    return int(answer.json()["step"] or 0)


async def _forget_all(running: Cluster, service: str) -> None:
    """Let a service read everything anew: its rows are dropped."""
    running.kill(service)
    dsn = running.stack.postgres.superuser_dsn("trainmaster")
    connection = await asyncpg.connect(dsn)
    try:
        rows = await connection.fetch(
            "select nspname from pg_namespace where nspname ~ $1",
            f"^{service.replace('-', '_')}_v[0-9]+$",
        )
        assert rows, service
        for row in rows:
            await connection.execute(f"drop schema {row['nspname']} cascade")
    finally:
        await connection.close()
    start(running, service)
