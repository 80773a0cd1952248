"""How a message of the contract is read and written.

The wire form is the proto3 JSON mapping with the field names of the `.proto` files:
defaults are left out, so every field has one; int64 is a string; both snake_case and
lowerCamelCase are read; unknown fields are ignored, because additions are legal. So are
unknown words of a word list, which read as "", and null, which reads as absent.
"""

from enum import StrEnum
from functools import cache
from inspect import isclass
from typing import Annotated, Any, Final, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails, from_json, to_json
from typing_extensions import override

Int32 = Annotated[int, Field(ge=-(2**31), le=2**31 - 1)]
UInt32 = Annotated[int, Field(ge=0, le=2**32 - 1)]
Int64 = Annotated[
    int,
    Field(ge=-(2**63), le=2**63 - 1),
    PlainSerializer(str, return_type=str, when_used="json"),
]
Json = dict[str, "Json"] | list["Json"] | str | float | bool | None


class Message(BaseModel):
    """Base of every message of the contract."""

    model_config = ConfigDict(
        frozen=True,
        extra="ignore",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        ser_json_inf_nan="strings",
    )

    @override
    def __eq__(self, other: object) -> bool:
        # A default is one shared object, and writing a message compares with it.
        return self is other or super().__eq__(other)

    __hash__ = BaseModel.__hash__

    def to_json(self) -> bytes:
        """Encode to the wire form; defaults are left out."""
        return self.__pydantic_serializer__.to_json(
            self, exclude_defaults=True, by_alias=False
        )

    @classmethod
    def from_json(cls, data: bytes | str) -> Self:
        """Decode from the wire form; raises pydantic.ValidationError."""
        try:
            return cls.model_validate_json(data or b"{}")
        except ValidationError as error:
            if not any(map(_is_legal, error.errors(include_url=False))):
                raise
        # Rare, so the common way pays nothing for it.
        return cls.model_validate_json(to_json(_mended(from_json(data), cls)))


def _is_legal(error: ErrorDetails) -> bool:
    """Tell a null or an unknown word, which the mapping allows, from a mistake."""
    return error["input"] is None or error["type"] == "enum"


def _mended(value: Json, kind: type) -> Json:
    """Leave out nulls and empty unknown words, wherever a message may have them."""
    if isinstance(value, list):
        return [_mended(part, kind) for part in value]
    if isinstance(value, dict) and issubclass(kind, Message):
        return _mended_fields(value, _kinds(kind))
    if isinstance(value, str) and issubclass(kind, StrEnum):
        return value if value in set(kind) else ""
    return value


def _mended_fields(fields: dict[str, Json], kinds: dict[str, type]) -> Json:
    return {
        name: _mended(value, kinds.get(name, _OTHER))
        for name, value in fields.items()
        if value is not None
    }


_OTHER: Final = object
"""The kind of all that is neither message nor word."""


@cache
def _kinds(message: type[Message]) -> dict[str, type]:
    """Name the message or word list of every field, in both spellings."""
    return {
        name: _kind(field.annotation)
        for field_name, field in message.model_fields.items()
        for name in (field_name, to_camel(field_name))
    }


def _kind(annotation: Any) -> type:
    for part in (annotation, *get_args(annotation)):
        if isclass(part) and issubclass(part, (Message, StrEnum)):
            return part
    return _OTHER
