"""What a model writes, protobuf reads; what protobuf writes, the model reads."""

import json
from typing import Any

import pytest
from google.protobuf import json_format
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.contract.contract import MODELS, name_of, parse, written
from tests.contract.strategies import instances

from trainmaster.core.events import AttemptEnded, Requeued
from trainmaster.core.messages import MetricSample, Progress
from trainmaster.core.model import Json, Message
from trainmaster.core.notes import CheckpointVerified
from trainmaster.core.spec import JobSpec
from trainmaster.core.values import Cause, MemberSlot, RankExit

pytestmark = pytest.mark.contract

each_model = pytest.mark.parametrize("model", MODELS, ids=name_of)
some = settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


@each_model
@some
@given(data=st.data())
def test_a_message_comes_back_as_it_was(model: type[Message], data: st.DataObject):
    wire = data.draw(instances(model)).to_json()
    message = parse(model, wire)
    for back in (
        written(message, preserving_proto_field_name=True),
        written(message),
        written(message, always_print_fields_with_no_presence=True),
    ):
        assert body(model.from_json(back)) == json.loads(wire)


@each_model
@some
@given(data=st.data())
def test_unknown_fields_change_nothing(model: type[Message], data: st.DataObject):
    wire = data.draw(instances(model)).to_json()
    longer = json.dumps(with_unknown_fields(json.loads(wire), model))
    assert body(model.from_json(longer)) == json.loads(wire)
    assert parse(model, longer, ignore_unknown_fields=True) == parse(model, wire)
    with pytest.raises(json_format.ParseError):
        parse(model, longer)


def body(message: Message) -> Any:
    """What is written, as a value: a map has no order, and "NaN" is equal to itself."""
    return json.loads(message.to_json())


def with_unknown_fields(value: Json, kind: type[Message] | None) -> Json:
    """Add a field to the message and to all its parts, but not to maps."""
    if isinstance(value, list):
        return [with_unknown_fields(part, kind) for part in value]
    if not isinstance(value, dict) or kind is None:
        return value
    known = {n: with_unknown_fields(v, part_of(kind, n)) for n, v in value.items()}
    return {**known, "added_later": {"a": [1, {"b": None}]}, "addedToo": "x"}


def part_of(model: type[Message], name: str) -> type[Message] | None:
    for part in parts(model.model_fields[name].annotation):
        if isinstance(part, type) and issubclass(part, Message):
            return part
    return None


def parts(annotation: Any) -> tuple[Any, ...]:
    return (annotation, *getattr(annotation, "__args__", ()))


@each_model
def test_nothing_written_is_all_defaults(model: type[Message]):
    assert model().to_json() == b"{}"
    assert model.from_json(b"{}") == model.from_json(b"") == model()
    assert written(parse(model, "{}")) == "{}"


@each_model
def test_null_is_absent(model: type[Message]):
    nulls = json.dumps(dict.fromkeys(model.model_fields))
    assert model.from_json(nulls) == model()
    assert parse(model, nulls) == parse(model, "{}")


def test_null_is_absent_deep_inside_too():
    wire = '{"first": {"rank": 1, "lastLines": null}, "exits": [{"at": null}]}'
    expected = AttemptEnded(first=RankExit(rank=1), exits=(RankExit(),))
    assert AttemptEnded.from_json(wire) == expected
    assert parse(AttemptEnded, wire) == parse(AttemptEnded, expected.to_json())


@pytest.mark.parametrize(
    ("model", "wire"),
    [
        (JobSpec, '{"env": {"A": null}}'),
        (JobSpec, '{"command": ["python", null]}'),
        (AttemptEnded, '{"exits": [null]}'),
        (MemberSlot, '{"first_rank": 2147483648}'),
        (MemberSlot, '{"first_rank": 1.5}'),
        (JobSpec, '{"user": {"uid": -1}}'),
        (CheckpointVerified, '{"bytes": "9223372036854775808"}'),
        (Progress, '{"at": "2026-01-02T03:04:05"}'),
        (Progress, '{"attempt": {}}'),
        (Progress, "[1]"),
        (Progress, "null"),
        (Progress, "{"),
    ],
)
def test_what_protobuf_refuses_is_refused(model: type[Message], wire: str):
    with pytest.raises(json_format.ParseError):
        parse(model, wire)
    with pytest.raises(ValueError, match="validation error"):
        model.from_json(wire)


# ------------------------------------------------------------------------ defaults


def test_an_explicit_zero_survives_where_absent_is_not_zero():
    spec = JobSpec(pool="", nodes=0, retries_max=0, stop_grace_seconds=0.0)
    assert JobSpec.from_json(written(parse(JobSpec, spec.to_json()))) == spec


def test_a_default_said_aloud_is_the_default():
    assert JobSpec.from_json('{"retriesMax": 3, "pool": "local", "user": {}}') == (
        JobSpec()
    )


@pytest.mark.parametrize("loss", [0.0, 1e-320, 1.7976931348623157e308])
def test_a_loss_of_zero_is_a_loss(loss: float):
    wire = Progress(loss=loss).to_json()
    assert Progress.from_json(written(parse(Progress, wire))).loss == loss


@each_model
def test_an_empty_part_is_read_as_the_part_that_is_absent(model: type[Message]):
    whole = {n for n, info in model.model_fields.items() if is_part(info.default)}
    wire = json.dumps({name: {} for name in whole})
    assert model.from_json(wire) == model()
    assert model.from_json(written(parse(model, wire))) == model()


def is_part(default: object) -> bool:
    return isinstance(default, Message)


@each_model
def test_an_optional_part_that_is_empty_is_not_absent(model: type[Message]):
    for name, info in model.model_fields.items():
        part = part_of(model, name)
        if part is None or info.default is not None:
            continue
        wire = model.model_validate({name: part()}).to_json()
        assert json.loads(wire) == {name: {}}
        assert model.from_json(written(parse(model, wire))).to_json() == wire


# ------------------------------------------------------------- numbers, times, words


@pytest.mark.parametrize("size", [0, 1, 2**53 + 1, 2**63 - 1, -(2**63)])
def test_64_bits_travel_as_a_string_and_are_read_as_a_number_too(size: int):
    message = CheckpointVerified(bytes=size)
    assert body(message) == ({"bytes": str(size)} if size else {})
    assert CheckpointVerified.from_json(json.dumps({"bytes": size})) == message
    assert parse(CheckpointVerified, json.dumps({"bytes": size})) == (
        parse(CheckpointVerified, message.to_json())
    )


def test_numbers_that_are_not_finite_are_words():
    wire = b'{"values":{"a":"NaN","b":"Infinity","c":"-Infinity"}}'
    sample = MetricSample.from_json(wire)
    assert sample.to_json() == wire
    assert json.loads(written(parse(MetricSample, wire))) == json.loads(wire)
    assert sample.values["b"] == float("inf")


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("2026-01-02T03:04:05Z", 0),
        ("2026-01-02T03:04:05.678Z", 678_000),
        ("2026-01-02T03:04:05.678901Z", 678_901),
        ("2026-01-02T03:04:05.678901234Z", 678_901),  # ours keep microseconds
        ("2026-01-02T05:04:05.678901+02:00", 678_901),
        ("2026-01-01T19:34:05.678901-07:30", 678_901),
    ],
)
def test_a_time_is_one_instant_however_it_is_spelled(text: str, micros: int):
    wire = json.dumps({"not_before": text})
    ours = Requeued.from_json(wire)
    theirs = Requeued.from_json(written(parse(Requeued, wire)))
    assert ours.not_before is not None
    assert ours.not_before.timestamp() == 1767323045 + micros / 1e6
    assert theirs.not_before == ours.not_before
    assert Requeued.from_json(written(parse(Requeued, ours.to_json()))) == ours


def test_an_unknown_word_is_unspecified_and_the_rest_is_read():
    wire = '{"attempt": 2, "cause": "cosmic_rays", "exits": [{"rank": 1}]}'
    expected = AttemptEnded(
        attempt=2, cause=Cause.UNSPECIFIED, exits=(RankExit(rank=1),)
    )
    assert AttemptEnded.from_json(wire) == expected


def test_an_unknown_word_is_refused_where_it_does_not_come_from_the_wire():
    with pytest.raises(ValueError, match="cosmic_rays"):
        AttemptEnded.model_validate({"cause": "cosmic_rays"})


def test_a_word_is_never_a_number():
    with pytest.raises(ValueError, match="cause"):
        AttemptEnded.from_json('{"cause": 3, "reason": null}')
