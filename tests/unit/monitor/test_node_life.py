"""Nodes: registered once, again when they change, lost after silence, back again."""

from datetime import timedelta
from typing import Any

import pytest
from tests.unit.monitor.world import World, a_beat, node_key

from trainmaster.core.facts import (
    Capacity,
    DrainRequested,
    DrainWithdrawn,
    NodeLost,
    NodeQuarantined,
    NodeRegistered,
)
from trainmaster.core.moment import Interval
from trainmaster.monitor.hearing import Hearing
from trainmaster.monitor.settings import NODES_MAX
from trainmaster.testkit.builders import START

pytestmark = pytest.mark.unit


@pytest.fixture
def world() -> World:
    world = World()
    world.listen()
    return world


def test_a_node_is_registered_by_its_first_heartbeat(world: World):
    world.beat("n1")
    beat = a_beat()
    assert world.turn() == [
        (
            node_key("n1"),
            NodeRegistered(
                capacity=beat.capacity,
                facts=beat.facts,
                boot_id=beat.boot_id,
                address=beat.address,
            ),
        )
    ]


def test_a_node_that_goes_on_beating_is_registered_once(world: World):
    assert world.live(60, "n1") == ["n1 registered"]


def test_nothing_is_said_twice_before_it_is_read_back(world: World):
    world.beat("n1")
    world.look()
    assert world.decide() == world.decide()


@pytest.mark.parametrize(
    "change",
    [
        {"capacity": Capacity(accelerators=4)},
        {"boot_id": "boot-2"},
        {"address": "10.0.0.9"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_node_that_changed_is_registered_again_at_once(
    world: World, change: dict[str, Any]
):
    world.live(2, "n1")
    world.seconds += 0.5
    world.beat("n1", **change)
    ((_, event),) = world.turn()
    assert isinstance(event, NodeRegistered)
    assert getattr(event, next(iter(change))) == next(iter(change.values()))
    assert world.turn() == []


def test_facts_that_flicker_are_registered_now_and_then(world: World):
    world.beat("n1")
    said = list(world.turn())
    for second in range(1, 31):
        world.seconds = float(second)
        world.beat("n1", facts={"load": str(second)})
        said += world.turn()
    assert 2 <= len(said) <= 4


def test_a_heartbeat_from_before_a_registration_changes_nothing(world: World):
    world.live(2, "n1")
    world.beat("n1", boot_id="boot-0")
    world.seconds += 1
    registered = NodeRegistered(capacity=Capacity(), boot_id="boot-1")
    world.say(node_key("n1"), registered)
    assert world.turn() == []


# ----------------------------------------------------------------------------- lost


def test_a_silent_node_is_lost_when_others_are_heard(world: World):
    world.live(5, "n1", "n2")
    assert world.live(4.5, "n2") == []
    assert world.live(1.5, "n2") == ["n1 lost"]
    assert world.live(60, "n2") == []


def test_a_lost_node_says_how_long_it_was_silent_and_which_boot_it_was(world: World):
    world.live(5, "n1", "n2")
    world.live(6, "n2")
    (lost,) = [e.event for e in world.log if isinstance(e.event, NodeLost)]
    assert 5.0 <= lost.silent_seconds <= 6.0
    assert lost.boot_id == "boot-1"


def test_a_slow_beat_is_waited_for_longer(world: World):
    world.beat("n1", interval_seconds=4.0)
    world.beat("n2")
    world.turn()
    assert world.live(19, "n2") == []
    assert world.live(2, "n2") == ["n1 lost"]


def test_a_node_comes_back_with_its_next_heartbeat(world: World):
    world.live(3, "n1", "n2")
    world.live(10, "n2")
    assert world.live(1, "n1", "n2") == ["n1 registered"]
    assert world.live(30, "n1", "n2") == []


def test_a_node_that_beat_before_it_was_lost_is_not_back(world: World):
    world.live(3, "n1", "n2")
    world.beat("n1")
    world.turn()
    world.say(node_key("n1"), NodeLost())
    assert world.live(30, "n2") == []


def test_the_silence_of_a_whole_pool_waits(world: World):
    world.live(5, "n1", "n2")
    assert world.live(14) == []
    assert world.live(2) == ["n1 lost", "n2 lost"]


def test_after_a_silence_of_the_bus_nobody_is_lost_who_beats_again(world: World):
    world.live(5, "n1", "n2")
    assert world.live(9.5) == []
    assert world.live(0.5, "n1") == []  # the first one heard again
    assert world.live(3, "n1") == []
    assert world.live(20, "n1", "n2") == []


def test_after_a_silence_of_the_bus_who_stays_away_is_lost(world: World):
    world.live(5, "n1", "n2")
    world.live(10)
    assert world.live(4, "n1") == []
    assert world.live(3, "n1") == ["n2 lost"]


def test_pools_are_silent_each_by_itself(world: World):
    world.beat("n1", pool="a")
    world.beat("n1", "n2", pool="b")
    world.turn()
    world.live(14, "n1", pool="b")
    lost = [e.key for e in world.log if isinstance(e.event, NodeLost)]
    assert lost == [node_key("n2", "b")]


# ---------------------------------------------------------------------------- blind


def test_a_blind_monitor_waits(world: World):
    world.live(5, "n1", "n2")
    blind = Interval(start=world.now, end=world.now + timedelta(seconds=20))
    world.blind = (blind,)
    assert world.live(24, "n2") == []
    assert world.live(3, "n2") == ["n1 lost"]


def test_a_deaf_monitor_judges_nobody(world: World):
    world.live(5, "n1", "n2")
    world.hearing.deaf = True
    assert world.live(120) == []
    world.listen()
    assert world.live(4, "n2") == []
    assert world.live(2, "n2") == ["n1 lost"]


def test_a_monitor_that_does_not_look_judges_nobody(world: World):
    world.live(5, "n1", "n2")
    world.seconds += 300
    assert world.decide().groups == ()


def test_what_was_heard_long_ago_is_no_silence_now(world: World):
    world.live(5, "n1", "n2")
    world.seconds += 300
    world.say(node_key("n3"), NodeQuarantined())
    assert world.decide().groups == ()


def test_a_fact_that_comes_late_is_judged_on_what_was_heard_already(world: World):
    world.live(5, "n1", "n2")
    now, world.seconds = world.seconds, world.seconds - 2
    world.say(node_key("n1"), NodeLost())
    world.seconds = now
    groups = world.decide().groups
    assert [write.key for group in groups for write in group] == [node_key("n1")]


def test_a_restarted_monitor_gives_every_node_its_time(world: World):
    world.live(5, "n1", "n2")
    world.seconds += 600
    world.hearing = Hearing()
    world.listen()
    assert world.live(4.5, "n2") == []
    assert world.live(1.5, "n2") == ["n1 lost"]


def test_without_heartbeats_ever_a_registered_node_is_lost_in_the_end(world: World):
    world.say(node_key("n1"), NodeRegistered(boot_id="boot-1"))
    assert world.live(14) == []
    assert world.live(2) == ["n1 lost"]


def test_a_node_that_nobody_registered_cannot_be_lost(world: World):
    world.say(node_key("n1"), DrainRequested())
    assert "n1 lost" not in world.live(60)


# --------------------------------------------------------------------------- drained


def test_an_empty_node_is_drained_at_once(world: World):
    world.live(1, "n1")
    world.say(node_key("n1"), DrainRequested())
    assert world.live(3, "n1") == ["n1 drained"]


def test_a_node_is_drained_once_nothing_is_charged_on_it(world: World):
    world.live(1, "n1", "n2")
    world.tell("submitted placed ordered started")
    world.say(node_key("n1"), DrainRequested())
    assert world.live(3, "n1", "n2") == []
    world.tell("completed")
    assert world.live(3, "n1", "n2") == []
    world.tell("reclaimed")
    assert world.live(3, "n1", "n2") == ["n1 drained"]


def test_a_drain_that_was_withdrawn_ends_in_nothing(world: World):
    world.live(1, "n1")
    world.tell("submitted placed:n1 ordered started")
    world.say(node_key("n1"), DrainRequested())
    world.say(node_key("n1"), DrainWithdrawn())
    world.tell("completed reclaimed")
    assert world.live(3, "n1") == []
    world.say(node_key("n1"), DrainRequested())
    assert world.live(3, "n1") == ["n1 drained"]


def test_a_quarantined_node_stays_so_when_it_registers_again(world: World):
    world.live(1, "n1")
    world.say(node_key("n1"), NodeQuarantined())
    world.seconds += 1
    world.beat("n1", boot_id="boot-2")
    world.turn()
    assert world.state.nodes[node_key("n1")].quarantined


# --------------------------------------------------------------------------- hearing


def test_only_news_is_news():
    hearing, key = Hearing(), node_key("n1")
    assert hearing.beat(key, a_beat(), 1.0)
    assert not hearing.beat(key, a_beat(members=3), 2.0)
    assert hearing.beat(key, a_beat(boot_id="boot-2"), 3.0)


def test_the_number_of_nodes_is_bounded():
    hearing = Hearing()
    for number in range(NODES_MAX + 10):
        hearing.beat(node_key(f"n{number}"), a_beat(), 1.0)
    assert len(hearing.view(START, 1.0).beats) == NODES_MAX


def test_a_node_not_heard_for_long_is_forgotten():
    hearing = Hearing()
    hearing.beat(node_key("n1"), a_beat(), 1.0)
    hearing.beat(node_key("n2"), a_beat(), 9.0)
    hearing.forget_before(5.0)
    assert set(hearing.view(START, 9.0).beats) == {node_key("n2")}
