"""Field numbers hold for ever: new ones are added, known ones never change."""

import json

from tools.contract.models import pretty
from tools.contract.protos import Written

Numbers = dict[str, dict[str, int]]


class NumberChangedError(Exception):
    """A field number that was published is no longer what it was."""

    def __init__(self, *, message: str, field: str, number: int) -> None:
        super().__init__(
            f"{message}.{field} has number {number} for ever: "
            "give it back; a field nobody needs stays, and says so in its comment"
        )


def extended(known: str, written: dict[str, Written]) -> str:
    """Add what is new to the published numbers."""
    published: Numbers = json.loads(known or "{}")
    for message, numbers in published.items():
        for field, number in numbers.items():
            if _number(written, message, field) != number:
                raise NumberChangedError(message=message, field=field, number=number)
    return pretty(
        {
            name: published.get(name, {})
            | {field.name: field.number for field in message.fields.values()}
            for name, message in sorted(written.items())
        }
    )


def _number(written: dict[str, Written], message: str, field: str) -> int:
    """Look a field's number up; 0, which no field has, when it is gone."""
    fields = written[message].fields if message in written else {}
    return fields[field].number if field in fields else 0
