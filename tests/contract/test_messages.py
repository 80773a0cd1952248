"""The `.proto` files say the same as the models, field by field."""

from typing import Final

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from tests.contract.contract import (
    EVENTS,
    MODELS,
    ROOT,
    compiled,
    descriptor,
    name_of,
    words_of,
)
from tests.contract.shapes import expected_shape, shape

from trainmaster.core import envelope
from trainmaster.core.events import REGISTRY, Event
from trainmaster.core.model import Message

pytestmark = pytest.mark.contract

FILE_OF_FAMILY: Final = {
    "job": "job.proto",
    "note": "note.proto",
    "plan": "plan.proto",
    "node": "node.proto",
    "member": "member.proto",
    "team": "team.proto",
    "pool": "team.proto",
    "token": "access.proto",
    "audit": "access.proto",
}
OURS: Final = [f for f in compiled().file if not f.name.startswith("google/")]


def test_every_model_has_a_message_and_every_message_a_model():
    written = sorted(message.name for file in OURS for message in file.message_type)
    assert written == [name_of(model) for model in MODELS]


def test_every_event_of_the_registry_travels():
    assert sorted(REGISTRY.values(), key=name_of) == EVENTS


@pytest.mark.parametrize("event", EVENTS, ids=name_of)
def test_an_event_is_in_the_file_of_its_family(event: type[Event]):
    file = descriptor(event).file.name
    assert file == f"trainmaster/events/v1/{FILE_OF_FAMILY[event.family]}"


@pytest.mark.parametrize("event", EVENTS, ids=name_of)
def test_the_envelope_names_the_message_and_a_schema_that_is_there(event: type[Event]):
    assert envelope.ce_type(event) == descriptor(event).full_name
    assert (ROOT / envelope.SCHEMA_FOLDER / f"{event.__name__}.json").is_file()


@pytest.mark.parametrize("model", MODELS, ids=name_of)
def test_fields_have_the_names_and_the_order_of_the_model(model: type[Message]):
    fields = descriptor(model).fields
    assert [field.name for field in fields] == list(model.model_fields)
    aliases = [info.alias for info in model.model_fields.values()]
    assert [field.json_name for field in fields] == aliases  # the camel case


@pytest.mark.parametrize("model", MODELS, ids=name_of)
def test_fields_have_the_types_of_the_model(model: type[Message]):
    actual = {field.name: shape(field) for field in descriptor(model).fields}
    expected = {n: expected_shape(info) for n, info in model.model_fields.items()}
    assert actual == expected


@pytest.mark.parametrize("model", MODELS, ids=name_of)
def test_presence_is_known_where_absent_is_not_zero(model: type[Message]):
    """Else an explicit zero would be dropped on the way and read as the default."""
    actual = {field.name for field in descriptor(model).fields if field.has_presence}
    defaults = {
        name: info.get_default(call_default_factory=True)
        for name, info in model.model_fields.items()
    }
    assert actual == {n for n, value in defaults.items() if value or value is None}


@pytest.mark.parametrize("model", MODELS, ids=name_of)
def test_an_absent_part_is_an_empty_part(model: type[Message]):
    for name, info in model.model_fields.items():
        if isinstance(info.default, Message):
            assert info.default == type(info.default)(), name


# ------------------------------------------------------------------------ comments


def comments(file: FileDescriptorProto) -> dict[tuple[int, ...], str]:
    return {
        tuple(location.path): " ".join(location.leading_comments.split())
        for location in file.source_code_info.location
    }


def message_comments(model: type[Message]) -> tuple[str, dict[str, str]]:
    """Return the comment of the message and those of its fields."""
    found = descriptor(model)
    file = next(f for f in OURS if f.name == found.file.name)
    index = [message.name for message in file.message_type].index(found.name)
    known = comments(file)
    fields = {f.name: known[4, index, 2, f.index] for f in found.fields}
    return known[4, index], fields


@pytest.mark.parametrize("file", OURS, ids=lambda file: file.name)
def test_every_file_says_what_it_is_about(file: FileDescriptorProto):
    syntax = (12,)  # the field of FileDescriptorProto that the first statement sets
    assert comments(file)[syntax]


@pytest.mark.parametrize("model", MODELS, ids=name_of)
def test_every_message_and_field_has_a_comment(model: type[Message]):
    message, fields = message_comments(model)
    assert message
    assert not [name for name, comment in fields.items() if not comment]


@pytest.mark.parametrize("event", EVENTS, ids=name_of)
def test_an_event_says_who_publishes_it_where(event: type[Event]):
    message, _ = message_comments(event)
    subject = f"tm.{event.family}.{'<pool>' if event.family == 'plan' else '<'}"
    assert f"Published by `{event.publisher}` on {subject}" in message
    assert f".{event.kind}" in message.rpartition(" on ")[2]


@pytest.mark.parametrize("model", MODELS, ids=name_of)
def test_the_words_of_a_list_are_all_named(model: type[Message]):
    _, fields = message_comments(model)
    for name, info in model.model_fields.items():
        words = words_of(info)
        if words is None:
            continue
        _, _, listed = fields[name].partition("One of: ")
        assert listed == ", ".join(f"`{w}`" for w in words if w) + ".", name


@pytest.mark.parametrize("model", MODELS, ids=name_of)
def test_a_default_that_is_not_zero_is_named(model: type[Message]):
    _, fields = message_comments(model)
    for name, info in model.model_fields.items():
        default = info.get_default(call_default_factory=True)
        if default and not isinstance(default, Message):
            said = f'"{default}"' if isinstance(default, str) else f"{default:g}"
            assert f"Absent means {said}." in fields[name], name


@pytest.mark.parametrize("model", MODELS, ids=name_of)
def test_a_word_list_has_an_unspecified_word_to_fall_back_to(model: type[Message]):
    for info in model.model_fields.values():
        words = words_of(info)
        assert words is None or "" in set(words)
