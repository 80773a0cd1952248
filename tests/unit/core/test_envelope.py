"""Envelopes: what is written is read back, and reading never raises."""

import json
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmaster.core import subjects
from trainmaster.core.envelope import (
    Entry,
    Raw,
    Undecodable,
    ce_type,
    chain_of,
    decode,
    headers,
    trace_of,
)
from trainmaster.core.events import REGISTRY, Event, Requeued, Submitted
from trainmaster.core.ids import EventId, Key
from trainmaster.testkit.builders import KEY, START
from trainmaster.testkit.strategies import addressed

pytestmark = pytest.mark.unit


def a_raw(subject: str, body: bytes) -> Raw:
    return Raw(
        stream="JOBS", seq=7, time=START, id=EventId("e1"), subject=subject, body=body
    )


def read(subject: str, body: bytes = b"{}") -> Entry | Undecodable:
    return decode(a_raw(subject, body))


@settings(max_examples=100, deadline=None)
@given(addressed())
def test_every_event_is_read_back_as_it_was_said(pair: tuple[Key, Event]):
    key, event = pair
    subject = subjects.event_subject(key, event)
    entry = read(subject, event.to_json())
    if subjects.parse(subject) is None:  # a rank no cluster has
        assert isinstance(entry, Undecodable)
        return
    assert entry == Entry(
        stream="JOBS",
        seq=7,
        time=START,
        id=EventId("e1"),
        family=event.family,
        key=key,
        event=event,
    )


some_subjects = st.one_of(
    st.just("tm.job.default.J1.submitted"),
    addressed().map(lambda pair: subjects.event_subject(*pair)),
    st.text(max_size=40),
)
some_bodies = st.one_of(
    st.binary(max_size=60),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["attempt", "spec", "exits", "cause", "at", "not_before"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=8,
    ).map(lambda value: json.dumps(value).encode()),
)


@settings(max_examples=200, deadline=None)
@given(some_subjects, some_bodies)
def test_reading_is_total(subject: str, body: bytes):
    result = read(subject, body)
    assert (result.stream, result.seq, result.id) == ("JOBS", 7, "e1")
    if isinstance(result, Undecodable):
        assert result.reason
        assert result.subject == subject


@pytest.mark.parametrize(
    ("subject", "body", "reason"),
    [
        ("tm.jobs.x", b"{}", "unknown subject"),
        ("tm.job.default.J1.exploded", b"{}", "unknown kind 'exploded'"),
        ("tm.job.default.J1.attempt_placed", b'{"attempt": "x"}', "1 invalid fields"),
        ("tm.job.default.J1.submitted", b"\xff\xfe", "1 invalid fields"),
        ("tm.job.default.J1.submitted", b"[" * 100_000, "1 invalid fields"),
        ("tm.job.default.J1.submitted", b"null", "1 invalid fields"),
        ("tm.job.default.J1.submitted", b"[]", "1 invalid fields"),
        ("tm.job.default.J1.submitted", b'{"by":"\\ud800"}', "1 invalid fields"),
        (
            "tm.job.default.J1.requeued",
            b'{"not_before":"2026-01-01T00:00:00"}',
            "1 invalid fields",
        ),
    ],
)
def test_what_cannot_be_read_says_why(subject: str, body: bytes, reason: str):
    result = read(subject, body)
    assert isinstance(result, Undecodable)
    assert result.reason == reason


def test_an_empty_body_is_an_event_of_defaults():
    result = read("tm.job.default.J1.submitted", b"")
    assert isinstance(result, Entry)
    assert result.event == Submitted()


def test_a_field_of_the_future_is_ignored():
    body = b'{"attempt": 3, "surprise": {"a": [1]}}'
    result = read("tm.job.default.J1.requeued", body)
    assert isinstance(result, Entry)
    assert result.event == Requeued(attempt=3)


def test_whoever_decodes_knows_every_event():
    script = (
        "from trainmaster.core import envelope; "
        "from trainmaster.core.events import REGISTRY; print(len(REGISTRY))"
    )
    alone = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=True, text=True
    )
    assert int(alone.stdout) == len(REGISTRY)


def test_an_unreadable_message_is_still_the_head_of_its_chain():
    assert chain_of("tm.job.default.J1.exploded") == "tm.job.default.J1.>"
    assert chain_of("tm.job.default.J1.a.b") == "tm.job.default.J1.>"
    assert chain_of("tm.note.default.J1.exploded") == ""


def test_headers_are_cloud_events_attributes():
    subject = subjects.event_subject(KEY, Submitted())
    told = headers(
        Submitted(),
        id_="e1",
        source="submission",
        subject=subject,
        time=START.isoformat(),
    )
    assert told == {
        "ce-specversion": "1.0",
        "ce-id": "e1",
        "ce-type": "trainmaster.events.v1.Submitted",
        "ce-source": "/trainmaster/submission",
        "ce-subject": "tm.job.default.job-1.submitted",
        "ce-time": "2026-01-01T00:00:00+00:00",
        "ce-dataschema": "proto/schemas/Submitted.json",
        "content-type": "application/json",
    }
    assert ce_type(Submitted) == told["ce-type"]


def test_the_trace_of_a_message_without_one_is_empty():
    assert trace_of({}) == ""
    assert trace_of({"traceparent": "00-1-2-01"}) == "00-1-2-01"
