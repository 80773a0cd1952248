"""What the `.proto` files say: messages, fields, numbers, comments."""

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field; `entry` is the value's field when it is a map."""

    name: str
    number: int
    type: int
    message: str
    repeated: bool
    comment: str
    entry: Self | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """One message as its file defines it."""

    name: str
    fields: dict[str, Field]


def compiled(root: Path) -> dict[str, Written]:
    """Compile all files below `root`; messages by name."""
    files = sorted(map(str, root.glob("trainmaster/events/v1/*.proto")))
    with tempfile.NamedTemporaryFile() as output:
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{root}"]
        command += ["--include_source_info", f"--descriptor_set_out={output.name}"]
        subprocess.run([*command, *files], check=True)
        result = FileDescriptorSet.FromString(Path(output.name).read_bytes())
    return {
        proto.name: _message(proto, _comments(file, index))
        for file in result.file
        for index, proto in enumerate(file.message_type)
    }


def _comments(file: FileDescriptorProto, message: int) -> dict[int, str]:
    """Comments of a message's fields, by their position in the file."""
    found: dict[int, str] = {}
    for location in file.source_code_info.location:
        match list(location.path):  # 4: messages of a file, 2: fields of a message
            case [4, owner, 2, field] if owner == message:
                found[field] = " ".join(location.leading_comments.split())
            case _:
                pass
    return found


def _message(proto: DescriptorProto, comments: dict[int, str]) -> Written:
    maps = {n.name: n.field[1] for n in proto.nested_type if n.options.map_entry}
    return Written(
        name=proto.name,
        fields={
            field.name: _field(field, comments.get(index, ""), maps)
            for index, field in enumerate(proto.field)
        },
    )


def _field(
    field: FieldDescriptorProto, comment: str, maps: dict[str, FieldDescriptorProto]
) -> Field:
    message = field.type_name.rpartition(".")[2]
    value = maps.get(message)
    return Field(
        name=field.name,
        number=field.number,
        type=field.type,
        message=message,
        repeated=field.label == FieldDescriptorProto.LABEL_REPEATED,
        comment=comment,
        entry=None if value is None else _field(value, "", {}),
    )
