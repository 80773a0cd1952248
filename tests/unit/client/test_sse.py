"""Server-sent events, line by line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.client.sse import ServerSentEvent, parse

pytestmark = pytest.mark.unit


def test_fields_are_joined_until_a_blank_line():
    lines = ["id: 7", "event: job", "data: a", "data:b", "", "data: c", ""]
    assert list(parse(lines)) == [
        ServerSentEvent(id="7", event="job", data="a\nb"),
        ServerSentEvent(data="c"),
    ]


def test_comments_and_unknown_fields_say_nothing():
    assert list(parse([": ping", "", "retry: 5", "", "data: x", "odd", ""])) == [
        ServerSentEvent(data="x")
    ]


def test_an_event_that_was_cut_off_is_dropped():
    assert list(parse(["data: whole", "", "data: cut"])) == [
        ServerSentEvent(data="whole")
    ]


@given(st.lists(st.text(st.characters(exclude_categories=["Cc", "Zl", "Zp", "Cs"]))))
def test_every_event_is_read_back(datas: list[str]):
    lines = [line for data in datas for line in (f"data: {data}", "")]
    assert [event.data for event in parse(lines)] == datas
