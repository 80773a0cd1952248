"""What was once written means the same for ever: golden samples, read by both sides."""

import json
from typing import Any, NamedTuple

import pytest
from tests.contract.contract import MODELS, PROTO, name_of, parse, written

from trainmaster.core.events import AttemptPlaced
from trainmaster.core.model import Json, Message

pytestmark = pytest.mark.contract


class Sample(NamedTuple):
    """One golden message: its body, and what a reader must get out of it."""

    name: str
    wire: dict[str, Any]
    meaning: dict[str, Any]

    @property
    def body(self) -> str:
        return json.dumps(self.wire)


def samples_of(model: type[Message]) -> list[Sample]:
    path = PROTO / "samples" / f"{model.__name__}.json"
    return [Sample(**fields) for fields in json.loads(path.read_text())]


each_model = pytest.mark.parametrize("model", MODELS, ids=name_of)


def meaning(message: Message) -> Any:
    return json.loads(message.model_dump_json(by_alias=False))


def holds(was: Json, now: Json) -> bool:
    """Tell whether all that was meant is still meant; fields may have been added."""
    if isinstance(was, dict) and isinstance(now, dict):
        return all(key in now and holds(was[key], now[key]) for key in was)
    if isinstance(was, list) and isinstance(now, list):
        return len(was) == len(now) and all(map(holds, was, now))
    return was == now


@each_model
def test_samples_mean_what_they_meant(model: type[Message]):
    for sample in samples_of(model):
        assert holds(sample.meaning, meaning(model.from_json(sample.body))), sample.name


@each_model
def test_samples_through_protobuf_mean_the_same(model: type[Message]):
    for sample in samples_of(model):
        message = parse(model, sample.body)
        for names_are_kept in (True, False):
            text = written(message, preserving_proto_field_name=names_are_kept)
            assert holds(sample.meaning, meaning(model.from_json(text))), sample.name


@each_model
def test_samples_are_written_as_they_were(model: type[Message]):
    for sample in samples_of(model):
        assert json.loads(model.from_json(sample.body).to_json()) == sample.wire


@each_model
def test_one_sample_has_no_field_and_one_has_every_field(model: type[Message]):
    wires = [sample.wire for sample in samples_of(model)]
    assert {} in wires
    assert any(wire.keys() == model.model_fields.keys() for wire in wires)


@each_model
def test_samples_fit_their_schema(model: type[Message]):
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    path = PROTO / "schemas" / f"{model.__name__}.json"
    validator = jsonschema.Draft202012Validator(json.loads(path.read_text()))
    for sample in samples_of(model):
        assert not [error.message for error in validator.iter_errors(sample.wire)]


def test_the_example_of_the_readme_can_be_read():
    lines = (PROTO / "README.md").read_text().splitlines()
    (example,) = [line for line in lines if line.startswith('{"attempt"')]
    placed = AttemptPlaced.from_json(example)
    assert placed.to_json() == example.encode()
    assert parse(AttemptPlaced, example) == parse(AttemptPlaced, placed.to_json())
