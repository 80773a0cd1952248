"""The waiting requests of one pool, kept in lines so that a plan need not sort them."""

from bisect import bisect_left, insort
from dataclasses import dataclass, field

from trainmaster.core.ids import JobKey
from trainmaster.scheduler.snapshot import Line, Place, Request, Want

_Which = tuple[str, Want]


@dataclass(slots=True)
class Queue:
    """Who waits; a request stands in exactly one line."""

    _requests: dict[JobKey, Request] = field(default_factory=dict[JobKey, Request])
    _lines: dict[_Which, list[Request]] = field(
        default_factory=dict[_Which, list[Request]]
    )
    _alone: dict[JobKey, Request] = field(default_factory=dict[JobKey, Request])

    def __len__(self) -> int:
        return len(self._requests)

    def add(self, request: Request) -> None:
        """Let a job stand in line."""
        self._requests[request.key] = request
        if request.alone:
            self._alone[request.key] = request
            return
        line = self._lines.setdefault((request.key.team, request.want), [])
        insort(line, request, key=_place)

    def remove(self, key: JobKey) -> None:
        """Let a job leave; nothing happens when it does not stand here."""
        request = self._requests.pop(key, None)
        if request is None or self._alone.pop(key, None) is not None:
            return
        which = key.team, request.want
        line = self._lines[which]
        del line[bisect_left(line, request.place, key=_place)]
        if not line:
            del self._lines[which]

    def lines(self) -> tuple[Line, ...]:
        """Copy the lines as they stand now."""
        return (
            *(
                Line(team=team, want=want, requests=tuple(requests))
                for (team, want), requests in self._lines.items()
            ),
            *(
                Line(team=r.key.team, want=r.want, requests=(r,))
                for r in self._alone.values()
            ),
        )


def _place(request: Request) -> Place:
    return request.place
