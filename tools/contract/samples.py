"""Golden samples: what was once written must mean the same for ever.

Each holds `wire`, the body as it travels, and `meaning`, every field a reader must get
out of it. Values exercise the encoding and make no story.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Proto

from tools.contract.models import pretty
from tools.contract.protos import Field, Written
from trainmaster.core.model import Json, Message

_INT64: Final = str(2**53 + 1)  # the first whole number that no double can hold
_INT32: Final = {"attempt": 2, "step": 600, "rank": 3, "uid": 4_000_000_000}
_TEXT: Final = {
    "backend": "docker",
    "by": "ada",
    "cause": "rank_failed",
    "for_job": "01J9ZC6T5Q3M8V7X2K4N0B1D3F",
    "launch": "once_per_node",
    "node": "n-7f3a",
    "order": "start",
    "outcome": "refused",
    "path": "/checkpoints/600",
    "pool": "a100",
    "reason": "rank 3 on n-7f3a: “CUDA error” \\ line 1\nline 2\t☃ 𝄞",
    "stop_cause": "preempted",
}
_DOUBLES: Final = {"a": 0.1, "b": 0.0, "c": "NaN", "d": "Infinity", "e": "-Infinity"}
_SCALARS: Final[Mapping[int, Any]] = {
    Proto.TYPE_BOOL: True,
    Proto.TYPE_DOUBLE: 12.5,
    Proto.TYPE_INT64: _INT64,
    Proto.TYPE_INT32: 7,
    Proto.TYPE_UINT32: 7,
}


class MeaningChangedError(Exception):
    """A published sample is no longer read as it was."""

    def __init__(self, *, message: str, sample: str) -> None:
        super().__init__(
            f"sample {sample!r} of {message} would mean something else: "
            "undo the change, or say it with a new field"
        )


def extended(known: str, model: type[Message], written: dict[str, Written]) -> str:
    """Add a sample of no field and one of every field, where they are missing."""
    published: list[dict[str, Any]] = json.loads(known or "[]")
    for sample in published:
        if not holds(sample["meaning"], _meaning(model, sample["wire"])):
            raise MeaningChangedError(message=model.__name__, sample=sample["name"])
    if not published:
        published.append(_sample("defaults", model, {}))
    everything = _full(written[model.__name__], written)
    if not any(everything.keys() <= sample["wire"].keys() for sample in published):
        published.append(_sample(f"full-{len(published)}", model, everything))
    return pretty(published)


def holds(was: Json, now: Json) -> bool:
    """Tell whether all that was said is still said; new fields may have come."""
    match was, now:
        case dict(), dict():
            return all(key in now and holds(was[key], now[key]) for key in was)
        case list(), list():
            return len(was) == len(now) and all(map(holds, was, now))
        case _:
            return was == now


def _sample(name: str, model: type[Message], wire: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "wire": wire, "meaning": _meaning(model, wire)}


def _meaning(model: type[Message], wire: dict[str, Any]) -> Any:
    message = model.from_json(json.dumps(wire))
    return json.loads(message.model_dump_json(by_alias=False))


def _full(message: Written, written: dict[str, Written]) -> dict[str, Any]:
    return {name: _value(field, written) for name, field in message.fields.items()}


def _value(field: Field, written: dict[str, Written]) -> Any:
    if field.entry is not None:
        is_double = field.entry.type == Proto.TYPE_DOUBLE
        return _DOUBLES if is_double else {"key": "value", "": "", "ключ": "значение"}
    one = _one(field, written)
    return [one, one] if field.repeated else one


def _one(field: Field, written: dict[str, Written]) -> Any:
    match field.type, field.message:
        case Proto.TYPE_MESSAGE, "Timestamp":
            return "2026-01-02T03:04:05.678901Z"
        case Proto.TYPE_MESSAGE, name:
            return _full(written[name], written)
        case Proto.TYPE_STRING, _:
            return _TEXT.get(field.name, f"some {field.name.replace('_', ' ')}")
        case kind, _:
            return _INT32.get(field.name, _SCALARS[kind])
