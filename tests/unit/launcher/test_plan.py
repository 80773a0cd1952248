"""What an agent does next: orders only go up, a close is never too late."""

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmaster.core.facts import (
    MemberClosed,
    MemberPrepared,
    MemberStarted,
    MemberStopped,
)
from trainmaster.core.messages import Assignment, Order
from trainmaster.launcher.agent.disk import MemberRecord
from trainmaster.launcher.agent.plan import (
    Close,
    Prepare,
    Start,
    Step,
    Stop,
    Wish,
    heard,
    next_step,
)

pytestmark = pytest.mark.unit

ORDERS = [Order.PREPARE, Order.START, Order.STOP, Order.CLOSE]
DONE = {
    "prepared": MemberPrepared(),
    "started": MemberStarted(),
    "stopped": MemberStopped(),
    "closed": MemberClosed(),
}


def order(attempt: int, what: Order, *, grace_seconds: float = 0.0) -> Assignment:
    return Assignment(attempt=attempt, order=what, grace_seconds=grace_seconds)


def wish(*orders: Assignment) -> Wish | None:
    wished: Wish | None = None
    for each in orders:
        wished = heard(wished, each)
    return wished


def record(*done: str) -> MemberRecord:
    said = {name: DONE[name] for name in done}
    return MemberRecord(boot_id="b", assignment=Assignment()).model_copy(update=said)


@pytest.mark.parametrize(
    ("ordered", "done", "expected"),
    [
        (Order.PREPARE, None, Prepare(attempt=1)),
        (Order.PREPARE, record("prepared"), None),
        (Order.START, None, Start(attempt=1)),
        (Order.START, record("prepared"), Start(attempt=1)),
        (Order.START, record("prepared", "started"), None),
        (Order.STOP, None, Stop(attempt=1, grace_seconds=0.0)),
        (Order.STOP, record("prepared", "started", "stopped"), None),
        (Order.CLOSE, None, Close(attempt=1, grace_seconds=0.0)),
        (Order.CLOSE, record("started"), Close(attempt=1, grace_seconds=0.0)),
        (Order.CLOSE, record("closed"), None),
        (Order.START, record("prepared", "closed"), None),
        (Order.PREPARE, record("closed"), None),
        (Order.STOP, record("closed"), None),
    ],
)
def test_the_next_step(ordered: Order, done: MemberRecord | None, expected: Step):
    records = {} if done is None else {1: done}
    assert next_step(wish(order(1, ordered)), records) == expected


def test_without_an_order_nothing_is_done():
    assert next_step(None, {1: record("prepared", "started")}) is None


def test_a_higher_attempt_closes_the_lower_one_first_and_at_once():
    wished = wish(order(2, Order.PREPARE))
    records = {1: record("prepared", "started")}
    assert next_step(wished, records) == Close(attempt=1, grace_seconds=0.0)
    records = {1: record("closed")}
    assert next_step(wished, records) == Prepare(attempt=2)


def test_a_lower_order_is_ignored():
    wished = wish(order(2, Order.START), order(1, Order.STOP), order(2, Order.PREPARE))
    assert next_step(wished, {2: record("prepared")}) == Start(attempt=2)


def test_a_close_of_an_old_attempt_is_carried_out_beside_a_newer_one():
    wished = wish(order(2, Order.START), order(1, Order.CLOSE, grace_seconds=3.0))
    assert next_step(wished, {}) == Close(attempt=1, grace_seconds=3.0)
    assert next_step(wished, {1: record("closed")}) == Start(attempt=2)


def test_the_same_order_again_may_carry_more():
    wished = wish(order(1, Order.STOP), order(1, Order.STOP, grace_seconds=9.0))
    assert next_step(wished, {}) == Stop(attempt=1, grace_seconds=9.0)


def done_by(step: Step, records: Mapping[int, MemberRecord]) -> dict[int, MemberRecord]:
    """What is known once a step was carried out."""
    names = {Prepare: "prepared", Start: "started", Stop: "stopped", Close: "closed"}
    name = names[type(step)]
    before = records.get(step.attempt) or record()
    after = before.model_copy(update={name: DONE[name]})
    return {**records, step.attempt: after}


@settings(max_examples=60)
@given(
    st.lists(st.builds(order, st.integers(1, 3), st.sampled_from(ORDERS)), max_size=8),
    st.dictionaries(
        st.integers(1, 3),
        st.lists(st.sampled_from(sorted(DONE)), max_size=4).map(lambda d: record(*d)),
    ),
)
def test_it_comes_to_rest_and_nothing_starts_in_what_is_closed(
    orders: list[Assignment], records: dict[int, MemberRecord]
):
    wished = wish(*orders)
    for _ in range(8):
        step = next_step(wished, records)
        if step is None:
            break
        known = records.get(step.attempt)
        assert known is None or known.closed is None
        if isinstance(step, Prepare | Start):
            lower = [r for number, r in records.items() if number < step.attempt]
            assert all(r.closed for r in lower)
        records = done_by(step, records)
    assert next_step(wished, records) is None


@settings(max_examples=60)
@given(
    st.lists(st.builds(order, st.integers(1, 3), st.sampled_from(ORDERS)), max_size=6),
    st.randoms(use_true_random=False),
)
def test_the_order_of_delivery_does_not_matter(
    orders: list[Assignment], chance: object
):
    shuffled = list(orders)
    getattr(chance, "shuffle")(shuffled)  # noqa: B009
    assert wish(*orders) == wish(*shuffled)
