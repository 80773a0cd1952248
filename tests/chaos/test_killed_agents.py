"""Agents are killed at each step of an attempt's life on their node.

What is on disk was not yet said, or what runs is not yet on disk: the next agent finds
the truth, says it again where that is harmless, and leaves nothing running.
"""

from functools import partial
from pathlib import Path

import pytest
from tests.chaos.deaths import death, start
from tests.chaos.stages import events_of, none_left, stubborn
from tests.chaos.trainings import Trainings

from trainmaster.core.events import AttemptReclaimed
from trainmaster.core.record import JobState
from trainmaster.testkit.cluster import Cluster, until

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.timeout(240),
    pytest.mark.asyncio(loop_scope="module"),
]

AGENT = "agent-n1"
# One life each; what is counted begins anew with every agent.
BEGINNING = (
    "agent.before_record=kill@1",  # prepared, and nobody knows
    "agent.after_record=kill@1",  # prepared, and not said
    "agent.after_say=kill@1",  # said, and not remembered that it was
    "process.before_spawn=kill@1",
    "process.after_spawn=kill@1",  # a shim that nobody waits for
    "agent.before_record=kill@2",  # ranks run, and the record does not say so
    "agent.after_record=kill@2",  # they are on record, and not said
)
END = (
    "process.before_term=kill@1",  # nothing starts any more, nobody was told to end
    "process.before_sweep=kill@1",  # told to end, and not looked whether it did
    "agent.before_record=kill@4",  # proven clean, and the proof is lost
    "agent.after_record=kill@4",  # the proof is on record, and not said
    "agent.after_say=kill@4",  # it is said, and not remembered that it was
    "agent.before_forget=kill@1",  # the backend still remembers as well
)
CLOSE_AFTER_STOP = ("process.before_term=kill@2", "process.before_sweep=kill@2")


async def test_an_agent_killed_at_each_step_of_one_start_doubles_no_rank(
    running: Cluster, shared_folder: Path
):
    trainings = Trainings(running=running, folder=shared_folder, how=("pass",))
    await trainings.under_deaths(AGENT, BEGINNING)
    await trainings.check_all_well()


async def test_an_agent_killed_at_each_step_of_a_close_gives_its_node_back_once(
    running: Cluster, shared_folder: Path
):
    trainings = Trainings(running=running, folder=shared_folder, how=("fail",))
    for point in END:
        await trainings.one_for_each_death(AGENT, [point])
        await _has_told_all(running)
    await trainings.check_all_well()
    for job in trainings.jobs.values():
        given_back = [
            (each.attempt, node)
            for each in await events_of(running, job, AttemptReclaimed)
            for node in each.nodes
        ]
        assert len(set(given_back)) == len(given_back) >= 4, "each node of two attempts"


@pytest.mark.parametrize("point", [*END, *CLOSE_AFTER_STOP])
async def test_a_cancel_is_carried_out_whichever_step_its_agent_dies_at(
    running: Cluster, shared_folder: Path, point: str
):
    ready, go = shared_folder / "ready", shared_folder / "never"
    running.kill(AGENT)
    start(running, AGENT, failpoints=point)
    job = running.submit(
        f"{shared_folder.name}-{point}"[-60:],
        command=["/bin/sh", "-c", stubborn(go, ready)],
        nodes=2,
        work_directory=str(shared_folder),
        output_directory=str(shared_folder / "out"),
        stop_grace=1,
    )
    await until("the ranks listen", ready.exists)
    await running.reaches(job, JobState.RUNNING)
    running.change(job, "cancel").raise_for_status()
    await death(running, AGENT, point)
    start(running, AGENT)
    assert await running.final(job) == JobState.CANCELLED
    await none_left(running, [job])
    await _has_told_all(running)
    assert await running.broken_rules(accepted=[job]) == []


async def _has_told_all(running: Cluster) -> None:
    """Wait until the agent has nothing on disk that it must still do or say."""
    members = running.options.data / "nodes" / AGENT.removeprefix("agent-") / "members"
    unfinished = partial(members.glob, "*/*/member.json")
    await until("the agent has told all", lambda: not list(unfinished()))
