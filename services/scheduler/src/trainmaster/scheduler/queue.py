"""The waiting requests of one pool, kept in lines so that a plan need not sort them."""

from bisect import bisect_left, insort
from dataclasses import dataclass, field

from trainmaster.core.ids import JobKey
from trainmaster.scheduler.snapshot import Line, Place, Request, Want

_Which = tuple[str, str, int, Want]


@dataclass(slots=True)
class Row:
    """Requests of one line; `copy` is what plans get while nothing changes."""

    which: _Which
    requests: list[Request]
    copy: Line | None = None


@dataclass(slots=True)
class Queue:
    """Who waits; a request stands in exactly one line.

    Users of a team stand in lines of their own only where there is a cap for each.
    """

    _requests: dict[JobKey, tuple[Request, Row | None]] = field(
        default_factory=dict[JobKey, tuple[Request, Row | None]]
    )
    _rows: dict[_Which, Row] = field(default_factory=dict[_Which, Row])
    _alone: dict[JobKey, Request] = field(default_factory=dict[JobKey, Request])
    _capped: set[str] = field(default_factory=set[str])

    def __len__(self) -> int:
        return len(self._requests)

    def add(self, request: Request) -> None:
        """Let a job stand in line."""
        if request.alone:
            self._requests[request.key] = (request, None)
            self._alone[request.key] = request
            return
        user = request.user if request.key.team in self._capped else ""
        which = request.key.team, user, request.priority, request.want
        row = self._rows.get(which)
        if row is None:
            row = self._rows[which] = Row(which, [])
        row.copy = None
        requests = row.requests
        if requests and requests[-1].place < request.place:
            requests.append(request)
        else:
            insort(requests, request, key=_place)
        self._requests[request.key] = (request, row)

    def remove(self, key: JobKey) -> None:
        """Let a job leave; nothing happens when it does not stand here."""
        request, row = self._requests.pop(key, (None, None))
        if request is None or row is None:
            self._alone.pop(key, None)
            return
        row.copy = None
        requests = row.requests
        if requests[0] is request:
            del requests[0]
        else:
            del requests[bisect_left(requests, request.place, key=_place)]
        if not requests:
            del self._rows[row.which]

    def cap(self, team: str, *, by_user: bool) -> None:
        """Part a team's lines by user, or join them."""
        if by_user == (team in self._capped):
            return
        moved = [r for r, _ in self._requests.values() if r.key.team == team]
        for request in moved:
            self.remove(request.key)
        self._capped ^= {team}
        for request in moved:
            self.add(request)

    def lines(self) -> tuple[Line, ...]:
        """Copy the lines as they stand now; those that did not change are kept."""
        return (
            *map(_copy, self._rows.values()),
            *(Line(requests=(request,)) for request in self._alone.values()),
        )


def _copy(row: Row) -> Line:
    if row.copy is None:
        row.copy = Line(requests=tuple(row.requests))
    return row.copy


def _place(request: Request) -> Place:
    return request.place
