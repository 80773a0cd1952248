"""What a field looks like on the wire, as its file and as its model say it."""

from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, get_args, get_origin

from google.protobuf.descriptor import FieldDescriptor as Field
from pydantic import AwareDatetime
from pydantic.fields import FieldInfo
from tests.contract.contract import message_name, value_of

from trainmaster.core.model import Message

Shape = tuple[str, int, str]
"""Single, repeated or map; the type; the message's name if it is one."""

SCALARS: Final[dict[Any, tuple[int, str]]] = {
    str: (Field.TYPE_STRING, ""),
    bool: (Field.TYPE_BOOL, ""),
    float: (Field.TYPE_DOUBLE, ""),
    datetime: (Field.TYPE_MESSAGE, "Timestamp"),
    AwareDatetime: (Field.TYPE_MESSAGE, "Timestamp"),
}
INTEGERS: Final = {
    (-(2**31), 2**31 - 1): Field.TYPE_INT32,
    (0, 2**32 - 1): Field.TYPE_UINT32,
    (-(2**63), 2**63 - 1): Field.TYPE_INT64,
}


def shape(field: Field) -> Shape:
    value = value_of(field)
    if value is not None:
        return ("map", *_scalar(value))
    return ("repeated" if field.is_repeated else "single", *_scalar(field))


def _scalar(field: Field) -> tuple[int, str]:
    return field.type, message_name(field)


def expected_shape(info: FieldInfo) -> Shape:
    annotation = info.annotation
    arguments = [a for a in get_args(annotation) if a not in {..., type(None)}]
    if get_origin(annotation) is dict:
        return ("map", *_expected_scalar(arguments[1], []))
    if get_origin(annotation) is tuple:
        (part,) = arguments
        return ("repeated", *_expected_scalar(part, []))
    (part,) = arguments or [annotation]
    return ("single", *_expected_scalar(part, info.metadata))


def _expected_scalar(part: Any, metadata: list[Any]) -> tuple[int, str]:
    if hasattr(part, "__metadata__"):  # Annotated, inside a container
        return _expected_scalar(part.__origin__, list(part.__metadata__))
    if part is int:
        return INTEGERS[_bounds(metadata)], ""
    if part in SCALARS:
        return SCALARS[part]
    if issubclass(part, StrEnum):
        return Field.TYPE_STRING, ""
    assert issubclass(part, Message)
    return Field.TYPE_MESSAGE, part.__name__


def _bounds(metadata: list[Any]) -> tuple[int, int]:
    """Read the least and the greatest value out of the constraints."""
    known = list(_constraints(metadata))
    (least,) = [c.ge for c in known if hasattr(c, "ge")]
    (greatest,) = [c.le for c in known if hasattr(c, "le")]
    return least, greatest


def _constraints(metadata: list[Any]) -> Iterator[Any]:
    for each in metadata:
        yield from each.metadata if isinstance(each, FieldInfo) else (each,)
