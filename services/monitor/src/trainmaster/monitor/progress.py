"""Publishes how far each job is, or was: one last value per job on STATUS.

A job that is over keeps its last step and loss: nobody else remembers them. What was
published before a restart stays until something newer is known: nothing is published,
and nothing purged, before the board has recalled what was known.
"""

from collections.abc import Callable, Iterable, Mapping

from trainmaster.core import subjects
from trainmaster.core.decision import Changed
from trainmaster.core.ids import JobId, JobKey
from trainmaster.core.model import Message
from trainmaster.monitor.board import Board
from trainmaster.monitor.history import History
from trainmaster.monitor.state import State
from trainmaster.runtime.last_values import LastValues
from trainmaster.runtime.log import Log


class ProgressEffect:
    """An effect: wanted is the board."""

    def __init__(
        self, log: Log, board: Board, history: History, *, wake: Callable[[], None]
    ) -> None:
        self.due: set[JobKey] = set()
        self._board = board
        self._history = history
        self._wake = wake
        self._recalled = False
        self._everything = True
        self._values = LastValues[State](
            log,
            stream=subjects.STATUS,
            owner_of_subject=owner_of,
            wanted=self.wanted,
            owners=self.owners,
        )

    def want(self, state: State, changed: set[Changed] | None) -> None:
        """Take over what is wanted; `changed` is None for everything."""
        self._everything |= changed is None
        if self._recalled:
            self._values.want(state, None if self._everything else changed)
            self._everything = False

    async def run(self) -> None:
        """Recall, then publish until cancelled."""
        self._board.recall(await self._history.recall())
        self._recalled = True
        self._wake()
        await self._values.run()

    def wanted(self, _state: State, owner: str) -> Mapping[str, Message]:
        """Give a job's progress, nothing for one that is not on the board."""
        found = self._board.of(JobId(owner))
        if found is None:
            return {}
        key, progress = found
        return {subjects.progress(key): progress}

    def owners(self, _state: State, changed: Iterable[Changed] | None) -> Iterable[str]:
        """Name whose progress is due."""
        due, self.due = self.due, set()
        if changed is None:
            due |= self._board.newest.keys()
        return {key.job for key in due}


def owner_of(subject: str) -> str:
    """Name the job whose progress stands under a subject, "" for another value."""
    key = subjects.parse_progress(subject)
    return "" if key is None else key.job
