"""Which models are messages of the contract, and how their JSON is rendered."""

import json
from collections.abc import Iterator

from trainmaster.core import ingress, messages, subjects
from trainmaster.core.events import Event
from trainmaster.core.model import Message

# Imported for the classes they define: together they know every message.
DEFINING = (ingress, messages, subjects)


def travelling() -> dict[str, type[Message]]:
    """Every message by name."""
    return {model.__name__: model for model in _concrete(Message)}


def pretty(value: object) -> str:
    """Render JSON for people and for diffs."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _concrete(base: type[Message]) -> Iterator[type[Message]]:
    """Walk all subclasses; an event without a publisher is only a base of others."""
    for model in base.__subclasses__():
        if not issubclass(model, Event) or model.publisher:
            yield model
        yield from _concrete(model)
