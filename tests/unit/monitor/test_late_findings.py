"""A finding is never lost, however soon the job is over and gone."""

import pytest
from tests.unit.monitor.test_findings import RUNNING, raised
from tests.unit.monitor.world import World, an_exit

from trainmaster.core.values import Cause

pytestmark = pytest.mark.unit


@pytest.fixture
def world() -> World:
    world = World()
    world.tell(RUNNING)
    return world


@pytest.mark.parametrize("words", ["failed", "failed archived"])
def test_a_finding_about_a_job_that_is_over_is_raised_at_once(world: World, words: str):
    """The job leaves all live state at any moment: nothing is waited for then."""
    world.progress(1, 120, 2.5)
    world.end(Cause.RANK_FAILED, first=an_exit())
    assert raised(world.turn()) == []
    world.tell(f"reclaimed {words}")
    (finding,) = raised(world.turn())
    assert finding.step == 120
    assert world.turn() == []


def test_a_finding_is_not_lost_while_the_monitor_is_away(world: World):
    world.end(Cause.RANK_FAILED, first=an_exit())
    world.tell("reclaimed failed archived")
    world.seconds += 600
    assert [f.finding for f in raised(world.turn())] == ["rank_exit-1"]
    assert world.state.ends == {}
