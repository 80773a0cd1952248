"""Owns the way from YAML to the tree of a job file.

What hides meaning is refused: anchors, aliases, merge keys, tags, a second document.
Built from the events of libyaml, without recursion, within the bounds of `document`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import yaml
from yaml.error import MarkedYAMLError
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)
from yaml.reader import ReaderError

from trainmaster.jobfile.document import (
    Budget,
    Items,
    Node,
    Pair,
    Pairs,
    Place,
    Scalar,
    UnreadableError,
    position,
    too_deep,
    usable,
)

# A build without libyaml reads 20 times more slowly and says much the same.
_Parser: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_EMPTY: Final = "is empty; the smallest job file has a `name` and a `command`"
_UNUSABLE: Final = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
)


def read_yaml(text: str) -> Node:
    """Read YAML with the place of everything. Raises UnreadableError."""
    found = _UNUSABLE.search(text)
    if found:
        message = f"contains the unusable character {found[0]!r}"
        raise UnreadableError(message, position(text, found.start()))
    builder = _Builder()
    try:
        next_event: Callable[[], Any] = _Parser(text).get_event
        while (event := next_event()).__class__ is not StreamEndEvent:
            builder.take(event)
    except MarkedYAMLError as error:
        raise _unreadable(error, text) from error
    except ReaderError as error:  # what the search above let through
        raise UnreadableError(f"is not YAML: {error.reason}") from error
    if builder.root is None:
        raise UnreadableError(_EMPTY)
    return builder.root


# ------------------------------------------------------------------- what went wrong

_HINTS: Final = (
    ("quoted scalar", "unexpected", "has a quote here that is never closed"),
    (
        "flow sequence",
        "",
        "has a `[` that is not closed; add the `]`, or a `,` between its values",
    ),
    (
        "flow mapping",
        "",
        "has a `{` that is not closed; add the `}`, or a `,` between its fields",
    ),
    ("simple key", "", "has a line without `: `; write `field: value`"),
)
"""Of the place where the parser began: its context, its problem, what we say."""
_PROBLEMS: Final = (
    (
        "mapping values are not allowed",
        "has a `: ` where none can be; indent it like the line above, or use quotes",
    ),
    (
        "cannot start any token",
        "has a value that begins with a sign of YAML's own; put it in quotes",
    ),
    (
        "did not find expected key",
        "is indented like no line above; begin it under the field it belongs beside",
    ),
    (
        "did not find expected '-' indicator",
        "is indented like no line above; begin it under the `-` it belongs beside",
    ),
    ("unknown escape character", "has a `\\` in double quotes; use single quotes"),
)


def _unreadable(error: MarkedYAMLError, text: str) -> UnreadableError:
    problem, context = error.problem or "", error.context or ""
    mark: Any = error.problem_mark or error.context_mark
    place = _place(mark) if mark else Place(line=1, column=1)
    lines = text.split("\n")
    line = lines[place.line - 1] if place.line <= len(lines) else ""
    if "\t" in line[: place.column] and not line[: place.column].strip():
        message = "has a tab where YAML wants spaces; indent with spaces"
        return UnreadableError(message, place)
    if "nesting depth" in problem:
        return too_deep(place)
    for told, asked, message in _HINTS:
        if told in context and asked in problem and error.context_mark:
            return UnreadableError(message, _place(error.context_mark))
    for asked, message in _PROBLEMS:
        if asked in problem:
            return UnreadableError(message, place)
    said = f"is not YAML: {problem or 'it cannot be read'} {context}".rstrip()
    return UnreadableError(said, place)


def _place(mark: Any) -> Place:
    return Place(line=mark.line + 1, column=mark.column + 1)


# ------------------------------------------------------------------------- the tree


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
        if kind in {MappingEndEvent, SequenceEndEvent}:
            self._put(self._open.pop().close())
        elif kind in {ScalarEvent, MappingStartEvent, SequenceStartEvent, AliasEvent}:
            place = _place(event.start_mark)
            _refuse_indirection(event, place)
            self._budget.spend(len(self._open), place)
            self._enter(kind, event, place)
        elif kind is DocumentStartEvent and self.root is not None:
            message = "has a second document; one file is one job"
            raise UnreadableError(message, _place(event.start_mark))

    def _enter(self, kind: type[Any], event: Any, place: Place) -> None:
        if kind is ScalarEvent:
            text = usable(event.value, place)
            plain = event.style in {None, ""}
            self._put(Scalar(place=place, text=text, plain=plain))
        else:
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
