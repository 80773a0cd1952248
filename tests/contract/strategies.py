"""Any message the models allow, for hypothesis."""

from datetime import UTC
from functools import cache
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor as Field
from hypothesis import strategies as st
from pydantic.fields import FieldInfo
from tests.contract.contract import MODELS, descriptor, message_name, value_of, words_of

from trainmaster.core.model import Message

Strategy = st.SearchStrategy[Any]
SCALARS: Final[dict[int, Strategy]] = {
    Field.TYPE_STRING: st.text(max_size=9),
    Field.TYPE_BOOL: st.booleans(),
    Field.TYPE_DOUBLE: st.floats(),
    Field.TYPE_INT32: st.integers(-(2**31), 2**31 - 1),
    Field.TYPE_UINT32: st.integers(0, 2**32 - 1),
    Field.TYPE_INT64: st.integers(-(2**63), 2**63 - 1),
}
BY_NAME: Final = {model.__name__: model for model in MODELS}


@cache
def instances(model: type[Message]) -> Strategy:
    """Build any value of the model; about half the fields keep their defaults."""
    fields = {field.name: field for field in descriptor(model).fields}
    return st.builds(
        model,
        **{
            name: st.just(info.get_default(call_default_factory=True))
            | values(fields[name], info)
            for name, info in model.model_fields.items()
        },
    )


def values(field: Field, info: FieldInfo) -> Strategy:
    words = words_of(info)
    if words is not None:
        return st.sampled_from(words)
    value = value_of(field)
    if value is not None:
        return st.dictionaries(st.text(max_size=3), one(value), max_size=3)
    if field.is_repeated:
        return st.lists(one(field), max_size=3).map(tuple)
    return one(field)


def one(field: Field) -> Strategy:
    match message_name(field):
        case "":
            return SCALARS[field.type]
        case "Timestamp":
            return st.datetimes(timezones=st.just(UTC))
        case name:
            return instances(BY_NAME[name])
