"""What hypothesis draws: any message of the contract, keys, lives and whole logs.

Messages are drawn from the types of their fields, so a new event needs nothing here.
Lives are drawn word by word: honest words that follow. `wild` ones also hold words out
of turn, of other attempts, and events with arbitrary content.
"""

import types
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, Final, TypeVar, get_args, get_origin

from hypothesis import strategies as st
from pydantic import AwareDatetime
from pydantic.fields import FieldInfo

from trainmaster.core.envelope import Entry
from trainmaster.core.events import REGISTRY, Event, Transition
from trainmaster.core.ids import (
    JobId,
    JobKey,
    Key,
    MemberKey,
    NodeKey,
    PlanKey,
    PoolKey,
    TeamKey,
    TokenKey,
)
from trainmaster.core.job import TRANSITIONS, Void, evolve
from trainmaster.core.model import Message
from trainmaster.core.record import Job
from trainmaster.core.spec import JobSpec
from trainmaster.testkit.builders import KEY, START, WORDS, a_spec, an_entry, said

M = TypeVar("M", bound=Message)

ANY_EVENT: Final = tuple(REGISTRY.values())
TRANSITION_KINDS: Final = tuple(
    kind for kind in ANY_EVENT if issubclass(kind, Transition)
)
_KEYS: Final[Mapping[str, type[Key]]] = {
    "job": JobKey,
    "note": JobKey,
    "plan": PlanKey,
    "team": TeamKey,
    "pool": PoolKey,
    "token": TokenKey,
    "audit": TeamKey,
    "node": NodeKey,
    "member": MemberKey,
}
_INT32_MAX: Final = 2**31 - 1
_WORDS_MAX: Final = 24


def tokens() -> st.SearchStrategy[str]:
    """Draw what may stand in a subject."""
    return st.from_regex(r"[A-Za-z0-9_-]{1,12}", fullmatch=True)


def texts() -> st.SearchStrategy[str]:
    """Draw any text that has a wire form."""
    return st.text(st.characters(codec="utf-8"), max_size=12)


def moments() -> st.SearchStrategy[datetime]:
    """Draw times as the contract knows them: with a zone."""
    earliest, latest = datetime(1970, 1, 1), datetime(2100, 1, 1)  # noqa: DTZ001
    return st.datetimes(earliest, latest, timezones=st.just(UTC))


# ------------------------------------------------------------------------- messages

_PLAIN: Final[Mapping[Any, st.SearchStrategy[Any]]] = {
    str: texts(),
    int: st.integers(0, _INT32_MAX),
    float: st.floats(0, 1e9, allow_nan=False),
    bool: st.booleans(),
    datetime: moments(),
    AwareDatetime: moments(),
    types.NoneType: st.none(),
}


def _of_type(annotation: Any) -> st.SearchStrategy[Any]:
    """Draw a value for the annotation of a field."""
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    origin = get_origin(annotation)
    if origin is not None:
        return _GENERIC[origin](get_args(annotation))
    if issubclass(annotation, StrEnum):
        return st.sampled_from(list(annotation))
    return messages(annotation)


_GENERIC: Final[Mapping[Any, Callable[[tuple[Any, ...]], st.SearchStrategy[Any]]]] = {
    Annotated: lambda args: _of_type(args[0]),
    types.UnionType: lambda args: st.one_of([_of_type(arg) for arg in args]),
    tuple: lambda args: st.lists(_of_type(args[0]), max_size=3).map(tuple),
    dict: lambda args: st.dictionaries(*map(_of_type, args), max_size=2),
}


def _of_field(field: FieldInfo) -> st.SearchStrategy[Any]:
    return st.just(field.get_default(call_default_factory=True)) | _of_type(
        field.annotation
    )


def messages(kind: type[M]) -> st.SearchStrategy[M]:
    """Draw any message of this kind; every field is often its default."""

    def build(values: dict[str, Any]) -> M:
        return kind(**values)

    return _fields(kind).map(build)


@cache
def _fields(kind: type[Message]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {name: _of_field(field) for name, field in kind.model_fields.items()}
    )


def events(
    kinds: Sequence[type[Event]] = ANY_EVENT,
) -> st.SearchStrategy[Event]:
    """Draw any event of these kinds, with arbitrary content."""
    return st.sampled_from(kinds).flatmap(messages)


def specs() -> st.SearchStrategy[JobSpec]:
    """Draw any job spec, sensible or not."""
    return messages(JobSpec)


# ----------------------------------------------------------------------------- keys


def keys(kind: type[Key]) -> st.SearchStrategy[Key]:
    """Draw a key of this kind."""

    def build(parts: tuple[Any, ...]) -> Key:
        return kind(*parts)

    numbers = st.integers(0, 10**6)
    parts = [numbers if name == "attempt" else tokens() for name in kind._fields]
    return st.tuples(*parts).map(build)


def key_of(family: str) -> type[Key]:
    """Name the kind of key that events of a family are about."""
    return _KEYS[family]


@st.composite
def addressed(draw: st.DrawFn) -> tuple[Key, Event]:
    """Draw any event with a key it may be about."""
    event = draw(events())
    return draw(keys(key_of(event.family))), event


# ---------------------------------------------------------------------------- lives


_KIND_OF_WORD: Final = {
    word: type(said(Job(key=KEY), word, spec=a_spec())) for word in WORDS
}


# What `evolve` would let pass, but no honest service would say.
_HONEST: Final[Mapping[str, Callable[[Job], bool]]] = {
    "succeeded": lambda job: job.clean,
    "cancelled": lambda job: job.cancel is not None,
    "chosen": lambda job: job.start is None or not job.owes_proof(),
}


def _words_that_follow(job: Job, spec: JobSpec, prefix: str) -> list[str]:
    return [
        word
        for word, kind in _KIND_OF_WORD.items()
        if job.state in TRANSITIONS[kind]  # spares most of the tries
        and _HONEST.get(word, bool)(job)
        and isinstance(
            evolve(job, said(job, word, spec=spec, prefix=prefix), START), Job
        )
    ]


def _wild_events(job: Job, spec: JobSpec) -> st.SearchStrategy[Transition]:
    out_of_turn = st.sampled_from(sorted(WORDS)).map(
        lambda word: said(job, word, spec=spec)
    )
    of_another = st.tuples(st.sampled_from(sorted(WORDS)), st.integers(0, 3)).map(
        lambda pair: said(job, f"{pair[0]}@{pair[1]}", spec=spec)
    )
    arbitrary = st.sampled_from(TRANSITION_KINDS).flatmap(messages)
    return out_of_turn | of_another | arbitrary


# Said more often than the others, or few lives would come to run.
_FORWARD: Final = frozenset(
    [
        "submitted",
        "placed",
        "ordered",
        "started",
        "reclaimed",
        "requeued",
        "fenced",
        "succeeded",
    ]
)


def _next(job: Job, spec: JobSpec, prefix: str) -> st.SearchStrategy[Transition]:
    words = _words_that_follow(job, spec, prefix)
    forward = [word for word in words if word in _FORWARD]
    return st.sampled_from([*forward * 4, *words]).map(
        lambda word: said(job, word, spec=spec, prefix=prefix)
    )


@st.composite
def lives(
    draw: st.DrawFn, *, wild: bool = False, prefix: str = "n"
) -> list[Transition]:
    """Draw one job's events; without `wild` all of them follow, honestly."""
    spec = draw(st.builds(_small_spec, st.integers(1, 3), st.integers(0, 2)))
    job, said_so_far = Job(key=KEY), list[Transition]()
    for _ in range(draw(st.integers(1, _WORDS_MAX))):
        if job.archived:
            break
        chance = draw(st.integers(0, 3)) if wild else 1
        strategy = _next(job, spec, prefix) if chance else _wild_events(job, spec)
        event = draw(strategy)
        outcome = evolve(job, event, START)
        job = job if isinstance(outcome, Void) else outcome
        said_so_far.append(event)
    return said_so_far


def _small_spec(nodes: int, accelerators: int) -> JobSpec:
    return a_spec(nodes=nodes, accelerators_per_node=accelerators)


@st.composite
def logs(draw: st.DrawFn, *, wild: bool = False) -> list[Entry]:
    """Draw the log of up to three jobs whose events are interleaved."""
    told: dict[Key, list[Transition]] = {
        JobKey("default", JobId(f"job-{number}")): draw(
            lives(wild=wild, prefix=f"n{number}-")
        )
        for number in range(1, draw(st.integers(1, 3)) + 1)
    }
    turns = [key for key, life in told.items() for _ in life]
    rest = {key: iter(life) for key, life in told.items()}
    return [
        an_entry(next(rest[key]), key=key, seq=seq)
        for seq, key in enumerate(draw(st.permutations(turns)), 1)
    ]
