"""Owns the way from YAML 1.2 to the tree of a job file.

What hides meaning is refused: anchors, aliases, merge keys, tags, a second document.
Built from events, without recursion, within the bounds of `document`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)
from ruamel.yaml.reader import ReaderError

from trainmaster.submission.document import (
    Budget,
    Items,
    Node,
    Pair,
    Pairs,
    Place,
    Scalar,
    UnreadableError,
    usable,
)

_EMPTY: Final = "is empty; the smallest job file has a `name` and a `command`"


def read_yaml(text: str) -> Node:
    """Read YAML with the place of everything. Raises UnreadableError."""
    builder = _Builder()
    try:
        for event in _events(text):
            builder.take(event)
    except MarkedYAMLError as error:
        raise _unreadable(error, text) from error
    except ReaderError as error:
        raise _unusable(error, text) from error
    if builder.root is None:
        raise UnreadableError(_EMPTY)
    return builder.root


def _events(text: str) -> Iterator[Any]:
    yaml: Any = YAML(typ="safe", pure=True)
    events: Iterator[Any] = yaml.parse(text)
    return events


def _unreadable(error: Any, text: str) -> UnreadableError:
    """Make our error of ruamel's, whose types are not declared."""
    mark = error.problem_mark or error.context_mark
    place = _place(mark) if mark else None
    lines = text.splitlines()
    if place and place.line <= len(lines) and "\t" in lines[place.line - 1]:
        message = "has a tab where YAML wants spaces; indent with spaces"
        return UnreadableError(message, place)
    context = f" {error.context}" if error.context else ""
    problem = error.problem or "it cannot be read"
    return UnreadableError(f"is not YAML: {problem}{context}", place)


def _unusable(error: Any, text: str) -> UnreadableError:
    before = text[: error.position]
    line = before.count("\n") + 1
    column = len(before) - before.rfind("\n")
    message = f"contains the unusable character {chr(error.character)!r}"
    return UnreadableError(message, Place(line=line, column=column))


def _place(mark: Any) -> Place:
    return Place(line=mark.line + 1, column=mark.column + 1)


@dataclass(slots=True, kw_only=True)
class _Open:
    """A list or a mapping that has not ended yet."""

    place: Place
    mapping: bool
    items: list[Node] = field(default_factory=list[Node])
    pairs: list[Pair] = field(default_factory=list[Pair])
    key: Scalar | None = None

    def add(self, node: Node) -> None:
        if not self.mapping:
            self.items.append(node)
        elif self.key is not None:
            key, self.key = self.key, None
            self.pairs.append(Pair(place=key.place, key=key.text, value=node))
        elif isinstance(node, Scalar):
            if node.plain and node.text == "<<":
                raise UnreadableError(
                    "merge keys are not read here; write the values out", node.place
                )
            self.key = node
        else:
            raise UnreadableError("a key must be a word", node.place)

    def close(self) -> Node:
        if self.mapping:
            return Pairs(place=self.place, pairs=tuple(self.pairs))
        return Items(place=self.place, items=tuple(self.items))


class _Builder:
    """Builds the tree from events."""

    def __init__(self) -> None:
        self.root: Node | None = None
        self._open: list[_Open] = []
        self._budget = Budget()

    def take(self, event: Any) -> None:
        """Go on with the next event. Raises UnreadableError."""
        kind: type[Any] = event.__class__
        if issubclass(kind, NodeEvent):
            place = _place(event.start_mark)
            _refuse_indirection(event, place)
            self._budget.spend(len(self._open), place)
            self._enter(kind, event, place)
        elif kind in {MappingEndEvent, SequenceEndEvent}:
            self._put(self._open.pop().close())
        elif kind is DocumentStartEvent and self.root is not None:
            message = "has a second document; one file is one job"
            raise UnreadableError(message, _place(event.start_mark))

    def _enter(self, kind: type[Any], event: Any, place: Place) -> None:
        if kind is ScalarEvent:
            text = usable(event.value, place)
            self._put(Scalar(place=place, text=text, plain=not event.style))
        elif kind in {MappingStartEvent, SequenceStartEvent}:
            mapping = kind is MappingStartEvent
            self._open.append(_Open(place=place, mapping=mapping))

    def _put(self, node: Node) -> None:
        if self._open:
            self._open[-1].add(node)
        else:
            self.root = node


def _refuse_indirection(event: Any, place: Place) -> None:
    if isinstance(event, AliasEvent) or event.anchor is not None:
        message = "anchors and aliases are not read here; write the value out"
        raise UnreadableError(message, place)
    tag = getattr(event, "tag", None)
    if tag is not None:
        raise UnreadableError(f"tags such as `{tag}` are not read here", place)
