"""The AsyncAPI document is one, and says what the code does."""

import json
import re
from typing import Any

import pytest
from faststream.specification.asyncapi.v3_0_0.schema import ApplicationSchema
from tests.contract.contract import PROTO

from trainmaster.core.events import REGISTRY
from trainmaster.core.ingress import KINDS
from trainmaster.core.ingress_subjects import parse_said

pytestmark = pytest.mark.contract

DOCUMENT: dict[str, Any] = json.loads((PROTO / "asyncapi.json").read_text())
CHANNELS: dict[str, Any] = DOCUMENT["channels"]


def test_it_is_a_document_of_asyncapi_3():
    assert DOCUMENT["asyncapi"] == "3.0.0"
    assert ApplicationSchema.model_validate(DOCUMENT).channels.keys() == CHANNELS.keys()


def test_every_reference_leads_somewhere():
    references = re.findall(
        r'"\$ref": "([^"]+)"', (PROTO / "asyncapi.json").read_text()
    )
    assert references
    for reference in set(references):
        file, _, pointer = reference.partition("#")
        found: Any = json.loads((PROTO / file).read_text()) if file else DOCUMENT
        for step in filter(None, pointer.split("/")):
            found = found[step]
        assert found, reference


@pytest.mark.parametrize("kind", KINDS)
def test_other_systems_find_what_they_may_say(kind: str):
    heard = parse_said(CHANNELS[kind]["address"].replace("{source}", "ci"))
    assert heard is not None
    assert heard.kind == kind
    assert list(CHANNELS[kind]["messages"]) == [KINDS[kind].__name__]
    assert DOCUMENT["operations"][f"hear_{kind}"]["action"] == "receive"


def test_every_event_of_the_log_has_a_channel():
    said = {name for each in CHANNELS.values() for name in each["messages"]}
    assert {event.__name__ for event in REGISTRY.values()} <= said


def test_every_parameter_of_an_address_is_explained():
    for channel in CHANNELS.values():
        names = {part[1:-1] for part in channel["address"].split(".") if part[0] == "{"}
        assert names == channel["parameters"].keys(), channel["address"]
