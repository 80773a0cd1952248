"""Whose turn it is: priority, who came back, fair share, time of submission, id.

Who has waited beyond the bound of ageing stands before everybody who has not, so nobody
starves. Shares only grow while a plan is made: a team's entry is looked at again when
it comes to the front.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from heapq import heapify, heappop, heappush

from trainmaster.scheduler.books import Books
from trainmaster.scheduler.settings import AGEING_SECONDS
from trainmaster.scheduler.snapshot import Line, Request

_Rank = tuple[float, bool, str]
_Seat = tuple[datetime, str, int]
_Turn = tuple[float, bool, tuple[float, ...], datetime, str, str]


def aged(request: Request, now: datetime) -> bool:
    """Tell whether a job has waited beyond the bound."""
    return request.place.submitted_at + timedelta(seconds=AGEING_SECONDS) <= now


@dataclass(slots=True)
class Turns:
    """The foremost request of every line; a line goes on until it is dropped.

    Lines of one team and class stand together, so that a team's share is looked at
    once for all of them.
    """

    books: Books
    claims: frozenset[str]
    lines: list[Line] = field(default_factory=list[Line])
    reached: list[int] = field(default_factory=list[int])
    fair: bool = False
    _seats: dict[_Rank, list[_Seat]] = field(default_factory=dict[_Rank, list[_Seat]])
    _fronts: list[tuple[_Turn, int]] = field(default_factory=list[tuple[_Turn, int]])
    _listed: dict[_Rank, int] = field(default_factory=dict[_Rank, int])
    _count: int = 0

    def admit(self, lines: list[Line]) -> None:
        """Let lines take part."""
        self.fair = len({line.head.key.team for line in lines}) > 1
        self.lines, self.reached = lines, [0] * len(lines)
        for number, line in enumerate(lines):
            rank = self._rank(line.head)
            self._seats.setdefault(rank, []).append(_seat(line.head, number))
        for rank, seats in self._seats.items():
            heapify(seats)
            self._list(rank)

    def __bool__(self) -> bool:
        return any(self._seats.values())

    def __iter__(self) -> Iterator[tuple[int, Request]]:
        """Give the next request and the number of its line, again and again."""
        while self._fronts:
            turn, count = heappop(self._fronts)
            rank = (turn[0], turn[1], turn[-1])
            if self._listed.get(rank) != count:
                continue  # a newer entry of these lines stands elsewhere
            if self._front(rank) != turn:
                self._list(rank)
                continue
            del self._listed[rank]
            seats = self._seats[rank]
            number = heappop(seats)[-1]
            yield number, self.lines[number].requests[self.reached[number]]
            if seats and rank not in self._listed:
                self._list(rank)

    def go_on(self, number: int) -> None:
        """Let the next of a line come up: the one before it was placed."""
        self.reached[number] += 1
        if self.reached[number] < len(self.lines[number].requests):
            self.put_back(number)

    def put_back(self, number: int) -> None:
        """Let the next of a line come up again."""
        request = self.lines[number].requests[self.reached[number]]
        rank, seat = self._rank(request), _seat(request, number)
        seats = self._seats.setdefault(rank, [])
        heappush(seats, seat)
        if rank not in self._listed or seats[0] is seat:
            self._list(rank)

    def left(self, number: int) -> tuple[Request, ...]:
        """List who of a line was not placed."""
        reached = self.reached[number]
        requests = self.lines[number].requests
        return requests[reached:] if reached else requests

    def _rank(self, request: Request) -> _Rank:
        old = aged(request, self.books.snapshot.now)
        level = -math.inf if old else float(request.place.priority_negated)
        behind = not (old or request.first or request.key.job in self.claims)
        return level, behind, "" if old else request.key.team

    def _list(self, rank: _Rank) -> None:
        """Put lines in their place; an entry they had before counts no more."""
        self._count += 1
        self._listed[rank] = self._count
        heappush(self._fronts, (self._front(rank), self._count))

    def _front(self, rank: _Rank) -> _Turn:
        level, behind, team = rank
        submitted_at, job, _ = self._seats[rank][0]
        share = self.books.share(team) if self.fair and team else ()
        return level, behind, share, submitted_at, job, team


def _seat(request: Request, number: int) -> _Seat:
    return request.place.submitted_at, request.place.id, number
