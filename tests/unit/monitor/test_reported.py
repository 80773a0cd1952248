"""What other systems report of nodes becomes a finding of the jobs there, once."""

import pytest
from tests.unit.monitor.world import KEY, World, node_key

from trainmaster.core.events import Event
from trainmaster.core.facts import HealthReported
from trainmaster.core.ids import Key
from trainmaster.core.notes import FindingCleared, FindingRaised
from trainmaster.core.values import Cause
from trainmaster.monitor.store import tables

pytestmark = pytest.mark.unit

AGAIN = "reclaimed requeued placed ordered started"


@pytest.fixture
def world() -> World:
    world = World()
    world.tell("submitted placed ordered started")
    return world


def report(world: World, node: str, problem: str = "Xid 79") -> None:
    world.say(node_key(node), HealthReported(check="gpu", problem=problem))


def findings(said: list[tuple[Key, Event]]) -> list[str]:
    return [
        event.finding
        for _, event in said
        if isinstance(event, FindingRaised | FindingCleared)
    ]


def first_node(world: World) -> str:
    return world.state.jobs[KEY].nodes[0]


def test_a_job_on_a_reported_node_has_one_finding_that_names_check_and_node(
    world: World,
):
    node = first_node(world)
    report(world, node)
    [(key, event)] = world.turn()
    assert (key, world.turn()) == (KEY, [])
    assert event == FindingRaised(
        attempt=1,
        finding="node_reported-1",
        rule="node_reported",
        summary=f"gpu on {node}: Xid 79",
        evidence=(f"gpu on {node}: Xid 79",),
    )


def test_a_node_without_the_job_is_none_of_its_business(world: World):
    report(world, "elsewhere")
    assert world.turn() == []


def test_a_check_that_passes_again_clears_the_finding_once(world: World):
    node = first_node(world)
    report(world, node)
    world.turn()
    report(world, node, problem="")
    assert findings(world.turn()) == ["node_reported-1"]
    assert world.turn() == []


def test_a_check_that_flickers_is_remarked_once_per_attempt(world: World):
    node = first_node(world)
    for _ in range(3):
        report(world, node)
        world.turn()
        report(world, node, problem="")
        world.turn()
    notes = [e.event for e in world.log if e.family == "note"]
    assert [type(note) for note in notes] == [FindingRaised, FindingCleared]


def test_a_report_that_comes_after_the_crash_still_counts(world: World):
    world.end(Cause.RANK_FAILED)
    report(world, first_node(world))
    assert "node_reported-1" in findings(world.turn())


def test_the_next_attempt_on_the_same_node_has_its_own_finding(world: World):
    report(world, first_node(world))
    world.turn()
    world.end(Cause.RANK_FAILED)
    world.tell(AGAIN)
    assert "node_reported-2" in findings(world.turn())


def test_what_was_remarked_is_remembered_in_rows(world: World):
    report(world, first_node(world))
    world.turn()
    rows = tables().dump(world.state, [("reported", KEY)])
    read = tables().load({"reported": {k: str(v) for (_, k), v in rows.items()}})
    assert read.reported == world.state.reported
