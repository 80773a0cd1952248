"""Owns waiting for several streams at once: each in a thread, all in one queue."""

import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from trainmaster.core.errors import TrainmasterError

_LOOK_SECONDS: Final = 0.5
"""How often a wait looks up; a Ctrl-C is heard at once all the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """Something that came, from the named stream."""

    stream: str
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Over:
    """The named stream ended, by an error or by itself."""

    stream: str
    error: TrainmasterError | None = None


class Merged:
    """Streams read side by side; a thread that still reads dies with the process."""

    def __init__(self, streams: Mapping[str, Callable[[], Iterable[Any]]]) -> None:
        self._queue: queue.SimpleQueue[Item | Over] = queue.SimpleQueue()
        for name, open_stream in streams.items():
            threading.Thread(
                target=self._read, args=(name, open_stream), daemon=True
            ).start()

    def take(self, *, until: float | None = None) -> Iterator[Item | Over]:
        """Yield what comes; ends at `until` (monotonic seconds), else never."""
        while until is None or time.monotonic() < until:
            left = _LOOK_SECONDS if until is None else until - time.monotonic()
            try:
                yield self._queue.get(timeout=max(0.0, min(left, _LOOK_SECONDS)))
            except queue.Empty:
                continue

    def _read(self, name: str, open_stream: Callable[[], Iterable[Any]]) -> None:
        error: TrainmasterError | None = None
        try:
            for value in open_stream():
                self._queue.put(Item(stream=name, value=value))
        except TrainmasterError as caught:
            error = caught
        finally:
            self._queue.put(Over(stream=name, error=error))
