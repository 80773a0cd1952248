"""JSON Schemas of the wire form, for whoever has no protobuf compiler.

They describe what is written. Readers take more: both spellings of a name, numbers for
int64, null for absent, and fields and words that are not listed.
"""

from typing import Any, Final

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema
from typing_extensions import override

from tools.contract.models import pretty
from tools.contract.protos import Written
from trainmaster.core.envelope import PACKAGE
from trainmaster.core.model import Message

_NOT_FINITE: Final = ["NaN", "Infinity", "-Infinity"]
_INT32_MAX: Final = 2**32


class WireSchema(GenerateJsonSchema):
    """Pydantic's schema, changed where the proto3 JSON mapping differs."""

    @override
    def int_schema(self, schema: core_schema.IntSchema) -> JsonSchemaValue:
        """Write 64 bits as a string: half the world's numbers are doubles."""
        if schema.get("le", 0) < _INT32_MAX:
            return super().int_schema(schema)
        return {"type": "string", "format": "int64", "pattern": "^-?[0-9]+$"}

    @override
    def float_schema(self, schema: core_schema.FloatSchema) -> JsonSchemaValue:
        """Write what is not finite as a word."""
        return {"anyOf": [super().float_schema(schema), {"enum": _NOT_FINITE}]}

    @override
    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        """List words as examples: the set is open."""
        listed = super().enum_schema(schema)
        listed["examples"] = [word for word in listed.pop("enum") if word]
        return listed

    @override
    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        """Leave out null: absent says it."""
        return self.generate_inner(schema["schema"])

    @override
    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """Name only defaults of a single value that is not zero."""
        described = super().default_schema(schema)
        default = described.pop("default", None)
        if default and not isinstance(default, (dict, list)):
            described["default"] = default
        return described

    @override
    def field_title_should_be_set(self, schema: Any) -> bool:
        """Spare titles that only repeat the name."""
        return False


def rendered(model: type[Message], written: dict[str, Written]) -> str:
    """Render one message's schema, with the comments of the `.proto` files."""
    schema = model.model_json_schema(by_alias=False, schema_generator=WireSchema)
    _describe(schema, written[model.__name__])
    for name, part in schema.get("$defs", {}).items():
        if name in written:
            _describe(part, written[name])
    return pretty(
        {
            "$schema": GenerateJsonSchema.schema_dialect,
            "$id": f"urn:{PACKAGE.replace('.', ':')}:{model.__name__}",
            **schema,
        }
    )


def _describe(schema: dict[str, Any], message: Written) -> None:
    for name, part in schema.get("properties", {}).items():
        part["description"] = message.fields[name].comment
