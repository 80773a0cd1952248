"""How a service's state becomes rows and comes back: documents in collections."""

from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter

from trainmaster.core.decision import Changed
from trainmaster.core.ids import JobKey, Key, MemberKey
from trainmaster.core.jobs import Jobs
from trainmaster.core.record import Job

S = TypeVar("S")
V = TypeVar("V")


class Collection(Generic[S, V]):
    """One kind of row: where it is in the state and how it is written."""

    def __init__(
        self,
        name: str,
        *,
        key: Callable[..., Key],
        value: type[V],
        of: Callable[[S], MutableMapping[Any, V]],
    ) -> None:
        self.name = name
        self._key = key
        self._adapter = TypeAdapter[V](value)
        self._of = of

    def dump(self, state: S, key: Key) -> str | None:
        """Write one value, None when it is not there any more."""
        value = self._of(state).get(key)
        return None if value is None else self._adapter.dump_json(value).decode()

    def load(self, state: S, text: str, body: str) -> None:
        """Put one value back."""
        value = self._adapter.validate_json(body)
        kept: Any = self._of(state)
        if isinstance(value, Job):
            kept.restore(value)
        else:
            kept[_read_key(self._key, text)] = value


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables(Generic[S]):
    """All rows of one service. A new `version` means another shape: replay."""

    service: str
    version: int
    empty: Callable[[], S]
    collections: tuple[Collection[S, Any], ...]

    @property
    def schema(self) -> str:
        """Name the schema; it carries the version."""
        return f"{self.service.replace('-', '_')}_v{self.version}"

    def load(self, documents: Mapping[str, Mapping[str, str]]) -> S:
        """Build the state from rows."""
        state = self.empty()
        for collection in self.collections:
            for key, body in documents.get(collection.name, {}).items():
                collection.load(state, key, body)
        return state

    def dump(
        self, state: S, changed: Iterable[Changed]
    ) -> dict[tuple[str, str], str | None]:
        """Write the rows that changed."""
        by_name = {collection.name: collection for collection in self.collections}
        return {
            (name, write_key(key)): by_name[name].dump(state, key)
            for name, key in changed
            if name in by_name
        }


def jobs_of(of: Callable[[S], Jobs]) -> Collection[S, Job]:
    """Make the collection of live jobs that most services have."""
    return Collection("job", key=JobKey, value=Job, of=of)


def write_key(key: Key) -> str:
    """Spell a key as a row's name."""
    return ".".join(map(str, key))


def _read_key(make: Callable[..., Key], text: str) -> Key:
    key = make(*text.split("."))
    if isinstance(key, MemberKey):
        return key._replace(attempt=int(key.attempt))
    return key
