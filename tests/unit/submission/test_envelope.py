"""Whatever comes in on the bus is understood or has a reason; nothing raises."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.core.ingress import JobRequested, MetricReported
from trainmaster.core.ingress_subjects import parse_said, reply_token, said
from trainmaster.submission.ingress.envelope import (
    Arrival,
    Message,
    Unreadable,
    Wrong,
    understood,
)

pytestmark = pytest.mark.unit

TYPE = "trainmaster.events.v1.JobRequested"
BINARY = {
    "ce-specversion": "1.0",
    "ce-id": "7",
    "ce-source": "/ci",
    "ce-type": TYPE,
    "content-type": "application/json",
}
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


def read(
    body: bytes, headers: dict[str, str] = BINARY, kind: str = "job_requested"
) -> Arrival | Wrong | Unreadable:
    return understood(Message(subject=said("ci", kind), headers=headers, body=body))


def structured(**changes: Any) -> Arrival | Wrong | Unreadable:
    event = {"specversion": "1.0", "id": "7", "source": "/ci", "type": TYPE, **changes}
    headers = {"Content-Type": "application/cloudevents+json"}
    return read(json.dumps(event).encode(), headers)


def test_both_modes_mean_the_same():
    binary = read(b'{"file": "name: x"}')
    assert isinstance(binary, Arrival)
    assert structured(data={"file": "name: x"}) == binary
    assert structured(data_base64="eyJmaWxlIjogIm5hbWU6IHgifQ==") == binary
    assert binary.said == JobRequested(file="name: x")
    assert (binary.sender.source, binary.sender.id) == ("ci", "7")


def test_headers_may_be_spelled_in_capitals():
    shouting = {name.upper(): value for name, value in BINARY.items()}
    assert read(b"{}", shouting) == read(b"{}")


def test_no_body_is_a_message_that_says_nothing():
    found = read(b"")
    assert isinstance(found, Arrival)
    assert found.said == JobRequested()


def test_the_order_and_the_spaces_of_a_document_do_not_make_it_another():
    first, second = (
        read(body)
        for body in (b'{"file": "x", "name": "y"}', b'{ "name":"y","file":"x" }')
    )
    assert isinstance(first, Arrival)
    assert first == second


def test_fields_of_a_later_contract_are_read_over():
    assert isinstance(read(b'{"file": "x", "later": {"a": [1]}}'), Arrival)


def test_every_wrong_field_is_named():
    found = read(b'{"file": 1, "name": []}')
    assert isinstance(found, Wrong)
    assert [fault.field for fault in found.faults] == ["file", "name"]


def test_a_number_that_is_none_is_a_word():
    headers = {**BINARY, "ce-type": "trainmaster.events.v1.MetricReported"}
    words = read(b'{"values": {"loss": "NaN"}}', headers, "metric_reported")
    assert isinstance(words, Arrival)
    assert isinstance(words.said, MetricReported)
    bare = read(b'{"values": {"loss": NaN}}', headers, "metric_reported")
    assert isinstance(bare, Unreadable)
    assert 'the string "NaN"' in bare.reason


def test_who_said_it_is_known_as_far_as_it_can_be_read():
    found = read(b"{", {"ce-id": "7", "ce-source": "/ci"})
    assert isinstance(found, Unreadable)
    assert (found.sender.source, found.sender.kind) == ("ci", "job_requested")


@given(
    body=st.binary() | JSON.map(lambda value: json.dumps(value).encode()),
    headers=st.dictionaries(
        st.sampled_from([*BINARY, "x"]),
        st.text() | st.sampled_from([*BINARY.values(), "application/cloudevents+json"]),
    ),
    kind=st.sampled_from(["job_requested", "metric_reported", "wished"]),
)
def test_nothing_raises(body: bytes, headers: dict[str, str], kind: str):
    found = read(body, headers, kind)
    assert found.sender.source == "ci"
    if isinstance(found, Arrival | Wrong):
        assert found.sender.id
        assert found.digest


@given(value=JSON)
def test_no_data_raises(value: Any):
    found = read(json.dumps(value).encode())
    assert isinstance(found, Arrival | Wrong | Unreadable)


@given(subject=st.text())
def test_no_subject_raises(subject: str):
    found = understood(Message(subject=subject, headers=BINARY, body=b"{}"))
    assert isinstance(found, Unreadable) or parse_said(subject)


@given(request=st.text())
def test_the_token_of_an_answer_always_fits_into_a_subject(request: str):
    token = reply_token(request, 7)
    assert parse_said(said("ci", token)) is not None
    assert len(token) <= 64
