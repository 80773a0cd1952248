"""Agents die, freeze and come back; cancels come at the worst moments.

Ranks are untouched by an agent's death, what ended meanwhile is known by its code, and
a node whose agent cannot say that it is clean is given to nobody.
"""

import signal
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from tests.chaos.stages import (
    AGENTS,
    Place,
    alive,
    events_of,
    everybody,
    in_every_state,
    none_left,
    pids_of,
)

from trainmaster.core.events import AttemptEnded, AttemptLost, AttemptReclaimed
from trainmaster.core.record import JobState
from trainmaster.core.values import Cause
from trainmaster.testkit.cluster import Cluster, until

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.timeout(180),
    pytest.mark.asyncio(loop_scope="module"),
]


@pytest.fixture
def place(running: Cluster, tmp_path: Path) -> Place:
    return Place(running=running, folder=tmp_path)


async def test_ranks_outlive_their_agent_and_their_exit_codes_are_known(place: Place):
    running, go = place.running, place.go("ends")
    ends = place.submit(
        "ends", f"while [ ! -e {go} ]; do sleep 0.05; done; exit 7", retries=0
    )
    stays = place.submit("stays")
    for job in (ends, stays):
        await running.reaches(job, JobState.RUNNING)
    gone, kept = await pids_of(running, [ends]), await pids_of(running, [stays])
    for agent in AGENTS:
        running.kill(agent)
    go.touch()
    await until("a rank ends while nobody looks", lambda: not alive(gone))
    for agent in AGENTS:
        running.start_agent(agent.removeprefix("agent-"))
    assert await running.final(ends) == JobState.FAILED
    (ended,) = await events_of(running, ends, AttemptEnded)
    assert ended.first is not None
    assert (ended.attempt, ended.cause, ended.first.code) == (1, Cause.RANK_FAILED, 7)
    assert alive(kept) == kept, "a restarted agent adopts what runs"
    assert await pids_of(running, [stays]) == kept
    place.go("stays").touch()
    assert await running.final(stays) == JobState.SUCCEEDED
    assert (await running.job(stays)).attempt == 1


async def test_a_grandchild_in_a_session_of_its_own_does_not_survive_a_cancel(
    place: Place,
):
    running, pid_file = place.running, place.folder / "grandchild"
    grandchild = (
        f"trap '' TERM; echo $$ > {pid_file}.new; mv {pid_file}.new {pid_file}; "
        "while :; do sleep 0.1; done"
    )
    job = place.submit(
        "family", f'(setsid /bin/sh -c "{_quoted(grandchild)}" &); exec sleep 1000'
    )
    await running.reaches(job, JobState.RUNNING)
    await until("the grandchild runs", pid_file.exists)
    family = {int(pid_file.read_text()), *await pids_of(running, [job])}
    assert alive(family) == family
    running.change(job, "cancel").raise_for_status()
    assert await running.final(job) == JobState.CANCELLED
    assert alive(family) == set(), "proven gone before the job is over"


def _quoted(script: str) -> str:
    return script.replace("$", "\\$")


async def test_a_cancel_at_every_state_ends_cancelled_with_nothing_left(place: Place):
    running = place.running
    jobs = {
        JobState.HELD: place.submit("held", hold=True),
        **await in_every_state(place),
        # last, when not all of both nodes is free any more
        JobState.QUEUED: place.submit("queued", nodes=2, accelerators_per_node=10),
    }
    for state, job in jobs.items():
        assert (await running.job(job)).state == state
        running.change(job, "cancel").raise_for_status()
    place.go("stopping").touch()
    everybody(running, signal.SIGCONT)
    ends = {state: await running.final(job) for state, job in jobs.items()}
    assert ends == dict.fromkeys(jobs, JobState.CANCELLED)
    await none_left(running, jobs.values())
    for job in jobs.values():
        assert not (await running.job(job)).unreclaimed
    assert await running.broken_rules(accepted=list(jobs.values()), settled=False) == []


@pytest.mark.parametrize("death", [signal.SIGKILL, signal.SIGSTOP])
async def test_jobs_of_a_dead_agent_move_on_and_its_node_stays_blocked(
    place: Place, death: signal.Signals
):
    running = place.running
    jobs = await in_every_state(place)
    (node,) = {n for job in jobs.values() for n in (await running.job(job)).nodes}
    dead, (other,) = f"agent-{node}", {*AGENTS} - {f"agent-{node}"}
    ranks = await pids_of(running, [jobs[JobState.RUNNING], jobs[JobState.STOPPING]])
    if death is signal.SIGKILL:
        running.kill(dead)
    running.signal(other, signal.SIGCONT)
    place.go("placed").touch()

    placed = jobs.pop(JobState.PLACED)
    ends = {state: await running.final(job) for state, job in jobs.items()}
    assert ends == dict.fromkeys(jobs, JobState.FAILED)
    assert await running.final(placed) == JobState.SUCCEEDED, "no start was ordered"
    assert (await running.job(placed)).nodes == (other.removeprefix("agent-"),)
    for state in (JobState.STARTING, JobState.RUNNING, JobState.STOPPING):
        (lost,) = await events_of(running, jobs[state], AttemptLost)
        assert lost.cause is Cause.NODE_LOST
    assert alive(ranks) == ranks, "nobody was there who could end them"
    await _is_blocked_and_given_to_nobody(place, node, jobs.values())

    if death is signal.SIGKILL:
        running.start_agent(node)
    else:
        running.signal(dead, signal.SIGCONT)
    place.go("stopping").touch()  # it would take all of its grace otherwise
    await until("the node is given back", lambda: _free(running, node))
    await none_left(running, jobs.values())
    for job in jobs.values():
        (reclaimed,) = await events_of(running, job, AttemptReclaimed)
        assert reclaimed.nodes == (node,)
    everything = [placed, *jobs.values()]
    assert await running.broken_rules(accepted=everything, settled=False) == []


async def _is_blocked_and_given_to_nobody(
    place: Place, node: str, owing: Collection[str]
) -> None:
    running = place.running
    seen = _node(running, node)
    assert seen["state"] == "lost"
    for job in owing:
        assert any(job in why for why in seen["blocked_by"]), seen
        assert (await running.job(job)).unreclaimed[1][0].node == node
    newcomer = place.submit("newcomer", "exit 0")
    assert await running.final(newcomer) == JobState.SUCCEEDED
    assert node not in (await running.job(newcomer)).nodes


def _node(running: Cluster, name: str) -> dict[str, Any]:
    answer = running.ask("GET", "/nodes")
    answer.raise_for_status()
    nodes: list[dict[str, Any]] = answer.json()["nodes"]
    return next(each for each in nodes if each["node"] == name)


def _free(running: Cluster, name: str) -> bool:
    seen = _node(running, name)
    return seen["state"] == "ready" and not seen["jobs"] and not seen["blocked_by"]
