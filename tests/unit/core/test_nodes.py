"""What a node offers and what keeps work away, folded alike by everybody."""

from datetime import timedelta

import pytest

from trainmaster.core.facts import (
    Capacity,
    Drained,
    DrainRequested,
    DrainWithdrawn,
    NodeFact,
    NodeLost,
    NodeQuarantined,
    NodeRegistered,
    NodeRestored,
)
from trainmaster.core.nodes import Node, node_after
from trainmaster.testkit.builders import START

pytestmark = pytest.mark.unit
REGISTERED = NodeRegistered(
    capacity=Capacity(accelerators=8), facts={"driver": "1"}, boot_id="b", address="a"
)


def told(*facts: NodeFact) -> Node:
    node = Node()
    for number, fact in enumerate(facts):
        node = node_after(node, fact, START + timedelta(seconds=number))
    return node


@pytest.mark.parametrize(
    ("facts", "trouble"),
    [
        ((), ""),
        ((NodeLost(),), "lost"),
        ((NodeLost(), REGISTERED), ""),
        ((DrainRequested(),), "draining"),
        ((DrainRequested(), Drained()), "drained"),
        ((DrainRequested(), REGISTERED), "draining"),
        ((DrainRequested(), Drained(), DrainWithdrawn()), ""),
        ((DrainRequested(), DrainWithdrawn(), DrainRequested()), "draining"),
        ((NodeQuarantined(), DrainRequested(), DrainWithdrawn()), "quarantined"),
        ((NodeQuarantined(), DrainRequested(), NodeRestored()), ""),
        ((NodeLost(), NodeQuarantined(), DrainRequested()), "lost"),
    ],
)
def test_what_keeps_work_away_is_said_in_a_word(
    facts: tuple[NodeFact, ...], trouble: str
):
    assert told(REGISTERED, *facts).trouble == trouble


def test_registering_says_all_anew_and_nothing_else_changes_it():
    node = told(REGISTERED, NodeQuarantined(reason="Xid 79"), NodeLost())
    assert node.capacity == REGISTERED.capacity
    assert node.facts == REGISTERED.facts
    assert (node.boot_id, node.address) == ("b", "a")
    assert (node.registered_at, node.reason) == (START, "Xid 79")
    assert node.lost_at == START + timedelta(seconds=2)
    again = node_after(node, NodeRegistered(boot_id="c"), START)
    assert (again.boot_id, again.capacity, again.lost_at) == ("c", Capacity(), None)
