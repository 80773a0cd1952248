"""What a service knows that is not on the log: requests in flight, observations."""

import asyncio
from collections.abc import Mapping
from typing import Any


class Facts:
    """Current facts by name; a change wakes the loop, an answer ends a question."""

    def __init__(self) -> None:
        self.changed = asyncio.Event()
        self._current: dict[str, Any] = {}
        self._questions: dict[str, asyncio.Future[Any]] = {}

    def current(self) -> Mapping[str, Any]:
        """List the facts as they are now."""
        return self._current

    def put(self, name: str, value: Any) -> None:
        """State a fact, replacing an older one of that name."""
        self._current[name] = value
        self.changed.set()

    def drop(self, name: str) -> None:
        """Forget a fact."""
        self._current.pop(name, None)

    async def ask(self, name: str, value: Any) -> Any:
        """Put a question to the policy and wait for its answer."""
        waiting = self._questions.get(name)
        if waiting is None:
            waiting = asyncio.get_running_loop().create_future()
            self._questions[name] = waiting
            self.put(name, value)
        # Whoever stops waiting leaves the question: it is answered all the same.
        return await asyncio.shield(waiting)

    def answer(self, name: str, value: Any) -> None:
        """Give the answer; the question is no longer a fact."""
        self.drop(name)
        waiting = self._questions.pop(name, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(value)
