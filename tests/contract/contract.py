"""Both sides of the contract: the models, and the compiled `.proto` files."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, Final

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message as ProtoMessage
from google.protobuf.message_factory import GetMessageClass
from pydantic.fields import FieldInfo

from trainmaster.core import ingress, messages, subjects
from trainmaster.core.envelope import PACKAGE
from trainmaster.core.events import Event
from trainmaster.core.model import Message

ROOT: Final = Path(__file__).parents[2]
PROTO: Final = ROOT / "proto"
DEFINING: Final = (ingress, messages, subjects)
"""Modules that together import every model."""


def concrete(base: type[Message]) -> Iterator[type[Message]]:
    for model in base.__subclasses__():
        if not issubclass(model, Event) or model.publisher:
            yield model
        yield from concrete(model)


MODELS: Final = sorted(
    # Only core's: services make messages of their own for what is not the contract.
    {m for m in concrete(Message) if m.__module__.startswith("trainmaster.core.")},
    key=lambda model: model.__name__,
)
EVENTS: Final = [model for model in MODELS if issubclass(model, Event)]


def name_of(model: type[Message]) -> str:
    return model.__name__


@cache
def compiled() -> FileDescriptorSet:
    files = sorted(map(str, PROTO.glob("trainmaster/events/v1/*.proto")))
    with tempfile.NamedTemporaryFile() as output:
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{PROTO}"]
        options = ["--include_source_info", "--include_imports"]
        target = f"--descriptor_set_out={output.name}"
        subprocess.run([*command, *options, target, *files], check=True)
        return FileDescriptorSet.FromString(Path(output.name).read_bytes())


@cache
def pool() -> DescriptorPool:
    known = DescriptorPool()
    for file in compiled().file:
        known.AddSerializedFile(file.SerializeToString())
    return known


def descriptor(model: type[Message]) -> Descriptor:
    return pool().FindMessageTypeByName(f"{PACKAGE}.{model.__name__}")


def proto(model: type[Message]) -> ProtoMessage:
    return GetMessageClass(descriptor(model))()


def parse(
    model: type[Message], wire: bytes | str, *, ignore_unknown_fields: bool = False
) -> ProtoMessage:
    return json_format.Parse(
        wire, proto(model), ignore_unknown_fields=ignore_unknown_fields
    )


def written(message: ProtoMessage, **options: Any) -> str:
    return json_format.MessageToJson(message, indent=None, **options)


def value_of(field: FieldDescriptor) -> FieldDescriptor | None:
    """Return the value's field of a map; None for any other field."""
    entry = field.message_type
    is_map = entry is not None and entry.GetOptions().map_entry
    return entry.fields_by_name["value"] if entry and is_map else None


def message_name(field: FieldDescriptor) -> str:
    """Name the message a field holds; "" when it holds none."""
    return field.message_type.name if field.message_type else ""


def words_of(info: FieldInfo) -> type[StrEnum] | None:
    """Return the word list of a field; None for any other field."""
    kind: Any = info.annotation
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return kind
    return None
