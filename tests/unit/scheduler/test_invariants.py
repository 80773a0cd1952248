"""What holds for every pool with quotas, classes and limits, whatever comes."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from tests.unit.scheduler.pools import TEAMS, histories, specs
from tests.unit.scheduler.test_policy import reloaded
from tests.unit.scheduler.world import POOL, World, a_spec

from trainmaster.core.events import AttemptPlaced, PreemptRequested, Submitted
from trainmaster.core.ids import JobId, JobKey, NodeKey, TeamKey
from trainmaster.core.messages import WaitReasons
from trainmaster.core.record import LIVE, Job, JobState
from trainmaster.core.spec import JobSpec
from trainmaster.scheduler import explain
from trainmaster.scheduler.explain import told
from trainmaster.scheduler.plan import plan
from trainmaster.scheduler.settings import AGEING_SECONDS
from trainmaster.scheduler.snapshot import Line, Snapshot
from trainmaster.testkit.rules import check_history

pytestmark = pytest.mark.unit

some = settings(max_examples=60, deadline=None)
ROUNDS_MAX = 60


def holding(world: World) -> dict[str, int]:
    """Count what teams hold, those above included, from the jobs alone."""
    held: dict[str, int] = {}
    for job in world.state.jobs.values():
        count = sum(len(s.accelerators) for m in job.unreclaimed.values() for s in m)
        team = job.key.team
        while team:
            held[team] = held.get(team, 0) + count
            known = world.state.teams.get(TeamKey(team))
            team = known.parent if known else ""
    return held


@some
@given(histories())
def test_every_history_keeps_the_rules(world: World):
    assert check_history(world.log) == []


@some
@given(histories())
def test_no_quota_and_no_cap_is_ever_exceeded(world: World):
    held = holding(world)
    for key, team in world.state.teams.items():
        quota = team.quotas.get(POOL)
        if quota is None:
            continue
        if quota.limit >= 0:
            assert held.get(key.team, 0) <= quota.limit
        if quota.accelerators_per_user_max >= 0:
            users = world.state.desk.user_use.get(POOL, {})
            mine = [n for (name, _), n in users.items() if name == key.team]
            assert max(mine, default=0) <= quota.accelerators_per_user_max


@some
@given(histories())
def test_what_teams_are_charged_is_what_their_jobs_hold(world: World):
    charged = {
        key.team: sum(used.accelerators for used in use.by_pool.values())
        for key, use in world.state.use.items()
    }
    held = holding(world)
    assert {k: v for k, v in charged.items() if v} == {
        k: v for k, v in held.items() if v and k in TEAMS
    }


@some
@given(histories())
def test_a_restarted_scheduler_plans_the_same(world: World):
    again, made = reloaded(world).plan(at=world.now), world.plan()
    assert again.placements == made.placements
    assert again.preemptions == made.preemptions
    assert again.waiting() == made.waiting()


@some
@given(histories())
def test_a_gang_is_whole_alike_and_near_as_demanded(world: World):
    for placement in world.plan().placements:
        want = placement.request.want
        rooms = world.state.snapshot(POOL, world.now).rooms
        frames = [rooms[member.node].frame for member in placement.members]
        assert len({frame.node for frame in frames}) == want.nodes
        assert len({frame.look.likeness for frame in frames}) == 1
        if want.topology == "rack!":
            assert len({frame.domain("rack") for frame in frames}) == 1


@some
@given(histories())
def test_reasons_are_there_exactly_for_what_is_not_placed(world: World):
    made = world.plan()
    placed = {placement.request.key for placement in made.placements}
    waiting = made.waiting()
    queued = {job.key for job in world.state.jobs.in_state(JobState.QUEUED)}
    assert queued == placed | waiting.keys()
    assert not placed & waiting.keys()
    assert all(told.reasons for told in waiting.values())


def _victims_leave(world: World) -> int:
    """Let everyone who was stopped go at once; gives how many went."""
    stopping = list(world.state.jobs.in_state(JobState.STOPPING))
    for job in stopping:
        world.say_ended_by_stop(job.key)
        world.tell(job.id, "reclaimed requeued", team=job.key.team)
    return len(stopping)


def _rest_settles(world: World) -> None:
    for job in list(world.state.jobs.in_state(JobState.SETTLING)):
        world.tell(job.id, "reclaimed failed", team=job.key.team)


@some
@given(histories())
def test_nobody_is_stopped_unless_somebody_then_starts(world: World):
    _victims_leave(world)
    _rest_settles(world)
    world.settle_quietly()
    made = world.plan()
    if not made.preemptions or made.placements:
        return
    wanted = {preemption.request.key for preemption in made.preemptions}
    world.cycle()
    _victims_leave(world)
    placed = {JobId(job) for job in world.cycle()}
    assert {key.job for key in wanted} <= placed


@some
@given(histories())
def test_a_pool_comes_to_rest_however_many_may_be_stopped(world: World):
    for _ in range(ROUNDS_MAX):
        events = len(world.log)
        world.cycle()
        _victims_leave(world)
        _rest_settles(world)
        if len(world.log) == events:
            break
    else:
        raise AssertionError("jobs stop each other for ever")
    assert not world.decide().groups


@some
@given(histories())
def test_no_job_gets_two_transitions_in_one_plan(world: World):
    writes = [write for group in world.decide().groups for write in group]
    keys = [write.key for write in writes]
    assert len(set(keys)) == len(keys)
    for write in writes:
        if isinstance(write.event, PreemptRequested):
            assert isinstance(write.key, JobKey)
            assert world.state.jobs[write.key].state in LIVE


@some
@given(histories(), specs())
def test_who_waited_beyond_the_bound_starts_once_there_is_room(
    world: World, spec: JobSpec
):
    spec = spec.model_copy(update={"nodes": 1, "topology": "", "priority": -100})
    old = JobKey("d", JobId("old"))
    for key in list(world.state.nodes):
        world.node(key.node, 4, cpus=8)
    world.say(old, Submitted(spec=spec))
    world.at(world.now + timedelta(seconds=AGEING_SECONDS))
    world.say(JobKey("d", JobId("new")), Submitted(spec=a_spec(priority=1000)))
    for job in list(world.state.jobs.values()):
        if job.key.team != "d":
            _finish(world, job)
    assert old in {p.request.key for p in world.plan().placements}


def _finish(world: World, job: Job) -> None:
    words = "cancel cancelled"
    if job.state in LIVE:
        world.tell(job.id, "ended", team=job.key.team)
    if world.state.jobs[job.key].state is JobState.SETTLING:
        words = "reclaimed failed"
    world.tell(job.id, words, team=job.key.team)


@some
@given(histories())
def test_every_counterfactual_is_true(world: World):
    world.settle_quietly()
    snapshot, made = world.state.snapshot(POOL, world.now), world.plan()
    waiting = told(made, {POOL: snapshot})
    for request, _ in made.foremost():
        reasons = waiting.get(request.key, WaitReasons())
        named = {each.change for each in reasons.counterfactuals}
        for change in explain.changes(request, POOL, {POOL: snapshot}):
            if change.change in named:
                assert _starts(change, snapshot)


def _starts(change: explain.Change, snapshot: Snapshot) -> bool:
    """Plan all of it anew, without any short cut."""
    asked = change.request
    lines: list[Line] = [Line(requests=(asked,))]
    for line in snapshot.lines:
        left = tuple(r for r in line.requests if r.key != asked.key)
        if left:
            lines.append(Line(requests=left))
    made = plan(replace(snapshot, lines=tuple(lines)))
    return asked.key in {p.request.key for p in made.placements}


@some
@given(histories())
def test_a_device_is_held_once(world: World):
    world.settle_quietly()
    holders: set[tuple[NodeKey, int]] = set()
    for entry in world.log:
        if isinstance(entry.event, AttemptPlaced):
            assert entry.event.members
    for job in world.state.jobs.values():
        for members in job.unreclaimed.values():
            for member in members:
                for index in member.accelerators:
                    held = NodeKey(job.pool, member.node), index
                    assert held not in holders
                    holders.add(held)
