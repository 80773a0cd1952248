"""Pools with quotas, classes and limits, and busy histories of them, for hypothesis."""

from datetime import timedelta

from hypothesis import strategies as st
from tests.unit.scheduler.world import POOL, World, a_spec

from trainmaster.core.events import Submitted
from trainmaster.core.facts import QuotaSet, TeamCreated
from trainmaster.core.ids import JobId, JobKey, TeamKey
from trainmaster.core.record import LIVE, JobState
from trainmaster.core.spec import JobSpec

TEAMS = ("a", "b", "c")


@st.composite
def specs(draw: st.DrawFn) -> JobSpec:
    return a_spec(
        nodes=draw(st.integers(1, 3)),
        accelerators_per_node=draw(st.integers(0, 4)),
        priority=draw(st.sampled_from([-100, 0, 0, 100, 1000])),
        time_limit_seconds=draw(st.sampled_from([0.0, 30.0, 300.0])),
        topology=draw(st.sampled_from(["", "", "rack", "rack!"])),
    )


@st.composite
def pools(draw: st.DrawFn) -> World:
    """Some nodes in racks, teams with quotas that borrow from each other."""
    world = World()
    for number in range(draw(st.integers(1, 5))):
        facts = {"rack": f"r{draw(st.integers(0, 1))}"}
        if draw(st.integers(0, 5)) == 0:
            facts["driver"] = "old"
        world.node(f"n{number}", draw(st.sampled_from([2, 4])), cpus=8, facts=facts)
    for team in TEAMS[:2]:
        world.say(TeamKey(team), TeamCreated(parent="both"))
    for team in TEAMS:
        if draw(st.booleans()):
            quota = QuotaSet(
                pool=POOL,
                accelerators=draw(st.integers(0, 6)),
                borrowing=draw(st.integers(0, 4)),
                reclaim=draw(st.sampled_from(["", "never", "lower_priority"])),
                accelerators_per_user_max=draw(st.sampled_from([-1, -1, 3])),
            )
            world.say(TeamKey(team), quota)
    return world


def _live(draw: st.DrawFn, world: World) -> None:
    """Let one job go a step on its way."""
    jobs = [job for job in world.state.jobs.values() if job.state in LIVE]
    settling = list(world.state.jobs.in_state(JobState.SETTLING))
    if settling:
        job = draw(st.sampled_from(settling))
        words = "reclaimed requeued" if draw(st.booleans()) else "reclaimed failed"
        world.tell(job.id, words, team=job.key.team)
    elif jobs:
        job = draw(st.sampled_from(jobs))
        if job.state is JobState.STOPPING:
            world.say_ended_by_stop(job.key)
        else:
            word = draw(st.sampled_from(["ordered", "started", "ended", "completed"]))
            world.tell(job.id, word, team=job.key.team)


@st.composite
def histories(draw: st.DrawFn) -> World:
    """A log of a busy pool that this scheduler has planned."""
    world = draw(pools())
    for _ in range(draw(st.integers(5, 40))):
        match draw(st.integers(0, 5)):
            case 0 | 1:
                key = JobKey(draw(st.sampled_from(TEAMS)), JobId(f"J{len(world.log)}"))
                by = draw(st.sampled_from(["ada", "eve"]))
                world.say(key, Submitted(spec=draw(specs()), by=by))
            case 2:
                _live(draw, world)
            case 3:
                seconds = draw(st.sampled_from([1, 100, 4000]))
                world.at(world.now + timedelta(seconds=seconds))
            case _:
                world.cycle()
    return world
