"""What holds for every plan, whatever waits and whatever is free."""

import random
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.scheduler.world import a_spec

from trainmaster.core.events import Submitted
from trainmaster.core.ids import JobId, JobKey, TeamKey
from trainmaster.core.job import evolve
from trainmaster.core.record import Job
from trainmaster.core.spec import JobSpec
from trainmaster.scheduler.labels import Frame, Look
from trainmaster.scheduler.plan import plan
from trainmaster.scheduler.result import Plan
from trainmaster.scheduler.snapshot import Room, Snapshot, lines_of, request_of
from trainmaster.scheduler.teams import Team
from trainmaster.testkit.builders import START

pytestmark = pytest.mark.unit

some = settings(max_examples=60, deadline=None)
NODES = ("n1", "n2", "n3", "n4")


@st.composite
def specs(draw: st.DrawFn) -> JobSpec:
    return a_spec(
        nodes=draw(st.integers(1, 3)),
        accelerators_per_node=draw(st.integers(0, 4)),
        cpus_per_node=draw(st.integers(0, 3)),
        priority=draw(st.integers(-1, 1)),
    )


@st.composite
def rooms(draw: st.DrawFn, node: str) -> Room:
    total, used = draw(st.integers(0, 4)), draw(st.sets(st.integers(0, 3)))
    trouble = draw(st.sampled_from(["", "", "", "lost", "draining"]))
    look = Look(accelerators=total, cpus=4, trouble=trouble)
    return Room(
        Frame(node, look),
        devices_free=tuple(i for i in range(total) if i not in used),
        cpus_free=draw(st.integers(0, 4)),
    )


@st.composite
def snapshots(draw: st.DrawFn) -> tuple[Snapshot, list[Job]]:
    """Any pool with any queue, and the jobs that wait in it."""
    jobs = [
        _queued(number, draw(specs()), at=draw(st.integers(0, 3)))
        for number in range(draw(st.integers(0, 12)))
    ]
    laid_out = {node: draw(rooms(node)) for node in NODES[: draw(st.integers(0, 4))]}
    stopped = {TeamKey("team-1"): Team(paused=True)}
    paused = stopped if draw(st.booleans()) else {}
    snapshot = Snapshot(
        pool="local",
        now=START,
        rooms=laid_out,
        lines=lines_of(map(request_of, jobs)),
        teams=paused,
    )
    return snapshot, jobs


def _queued(number: int, spec: JobSpec, *, at: int) -> Job:
    key = JobKey(f"team-{number % 3}", JobId(f"job-{number:02}"))
    job = evolve(Job(key=key), Submitted(spec=spec), START + timedelta(seconds=at))
    assert isinstance(job, Job)
    return job


@some
@given(snapshots())
def test_no_device_is_given_twice_and_none_that_is_not_free(
    drawn: tuple[Snapshot, list[Job]],
):
    snapshot, _ = drawn
    given_away = [
        (member.node, index)
        for placement in plan(snapshot).placements
        for member in placement.members
        for index in member.accelerators
    ]
    free = {
        (room.frame.node, index)
        for room in snapshot.rooms.values()
        if not room.frame.look.trouble
        for index in room.devices_free
    }
    assert len(set(given_away)) == len(given_away)
    assert free.issuperset(given_away)


@some
@given(snapshots())
def test_cores_of_jobs_without_accelerators_never_exceed_what_is_free(
    drawn: tuple[Snapshot, list[Job]],
):
    snapshot, _ = drawn
    for room in snapshot.rooms.values():
        taken = sum(
            placement.request.want.cpus
            for placement in plan(snapshot).placements
            for member in placement.members
            if member.node == room.frame.node
            and not placement.request.want.accelerators
        )
        assert taken <= max(room.cpus_free, 0)


@some
@given(snapshots())
def test_a_gang_is_whole_on_distinct_nodes_with_ranks_in_a_row(
    drawn: tuple[Snapshot, list[Job]],
):
    snapshot, jobs = drawn
    by_key = {job.key: job for job in jobs}
    for placement in plan(snapshot).placements:
        spec = by_key[placement.request.key].spec
        nodes = {member.node for member in placement.members}
        assert len(nodes) == len(placement.members) == spec.nodes
        assert {len(m.accelerators) for m in placement.members} == {
            spec.accelerators_per_node
        }
        ranks = [m.first_rank for m in placement.members]
        assert ranks == [i * spec.ranks_per_node for i in range(spec.nodes)]


@some
@given(snapshots())
def test_reasons_are_empty_exactly_for_what_is_placed(
    drawn: tuple[Snapshot, list[Job]],
):
    snapshot, jobs = drawn
    made = plan(snapshot)
    placed = {placement.request.key for placement in made.placements}
    waiting = made.waiting()
    assert {job.key for job in jobs} == placed | set(waiting)
    assert not placed & set(waiting)
    for reasons in waiting.values():
        assert reasons.reasons
        assert all(r.code and r.message for r in reasons.reasons)


@some
@given(snapshots(), st.integers())
def test_the_order_of_the_input_does_not_matter(
    drawn: tuple[Snapshot, list[Job]], seed: int
):
    snapshot, jobs = drawn
    dice = random.Random(seed)
    shuffled = dice.sample(jobs, len(jobs))
    lines = lines_of(map(request_of, shuffled))
    again = plan(
        Snapshot(
            pool=snapshot.pool,
            now=snapshot.now,
            rooms=dict(
                dice.sample(sorted(snapshot.rooms.items()), len(snapshot.rooms))
            ),
            lines=tuple(dice.sample(lines, len(lines))),
            teams=snapshot.teams,
        )
    )
    made = plan(snapshot)
    assert again.placements == made.placements
    assert again.waiting() == made.waiting()


@some
@given(snapshots())
def test_a_plan_is_a_function_of_its_snapshot(drawn: tuple[Snapshot, list[Job]]):
    snapshot, _ = drawn
    assert plan(snapshot) == plan(snapshot)


@some
@given(snapshots())
def test_nobody_less_important_takes_what_a_blocked_job_waits_for(
    drawn: tuple[Snapshot, list[Job]],
):
    """Without those behind it, a blocked job would have been blocked as well."""
    snapshot, jobs = drawn
    made = plan(snapshot)
    for rest in made.rests:
        if rest.gates or rest.verdict is None or not rest.verdict.reserves:
            continue
        head = rest.requests[0]
        before = [job for job in jobs if request_of(job).place <= head.place]
        alone = _replanned(snapshot, before)
        assert head.key not in {p.request.key for p in alone.placements}


def _replanned(snapshot: Snapshot, jobs: list[Job]) -> Plan:
    return plan(
        Snapshot(
            pool=snapshot.pool,
            now=snapshot.now,
            rooms=snapshot.rooms,
            lines=lines_of(map(request_of, jobs)),
            teams=snapshot.teams,
        )
    )
