"""What a plan comes to: who starts, who stops, who waits and what each is told."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from heapq import merge
from itertools import islice
from typing import Final

from trainmaster.core.events import AttemptPlaced, PreemptRequested
from trainmaster.core.ids import JobKey
from trainmaster.core.messages import WaitReason, WaitReasons
from trainmaster.core.record import Job
from trainmaster.core.values import MemberSlot
from trainmaster.scheduler import reasons, words
from trainmaster.scheduler.backfill import Start
from trainmaster.scheduler.reasons import Verdict
from trainmaster.scheduler.settings import EXPLAINED_MAX, TEXTS_KEPT_MAX
from trainmaster.scheduler.snapshot import Place, Request
from trainmaster.scheduler.words import Reason

_MOVING: Final = frozenset({words.FRAGMENTED, words.RESERVED, words.TOPOLOGY})
"""Reasons that come and go with every job that ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """One job that starts: all slots of its next attempt."""

    request: Request
    members: tuple[MemberSlot, ...]

    def event(self, pool: str) -> AttemptPlaced:
        """Say it on the log."""
        return AttemptPlaced(
            attempt=self.request.attempt, pool=pool, members=self.members
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Preemption:
    """One job that stops so that another starts."""

    victim: Job
    request: Request

    def event(self) -> PreemptRequested:
        """Say it on the log."""
        return PreemptRequested(
            attempt=self.victim.attempt,
            for_job=self.request.key.job,
            grace_seconds=self.victim.spec.stop_grace_seconds,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """Requests of one line that are not placed, and why."""

    requests: tuple[Request, ...]
    gates: tuple[Reason, ...] = ()
    quota: tuple[Reason, ...] = ()
    ahead: Request | None = None
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What one pool does now. `full`: more could be placed by the next plan at once.

    `changes_at` is when time alone may change it.
    """

    pool: str
    placements: tuple[Placement, ...] = ()
    preemptions: tuple[Preemption, ...] = ()
    rests: tuple[Rest, ...] = ()
    full: bool = False
    changes_at: datetime | None = None

    def waiting(self) -> Mapping[JobKey, WaitReasons]:
        """Give all reasons of every job that is not placed."""
        found: dict[JobKey, WaitReasons] = {}
        for requests, steady in self.steady():
            found.update(dict.fromkeys((r.key for r in requests), steady))
        found.update(self.at_length())
        return found

    def steady(self) -> Iterator[tuple[tuple[Request, ...], WaitReasons]]:
        """Give line by line what stays true while others come and go."""
        return ((rest.requests, _steady(rest)) for rest in self.rests)

    def foremost(self) -> Iterator[tuple[Request, Rest]]:
        """List who is next in line, with what keeps them."""
        in_line = (rest for rest in self.rests if not rest.gates)
        yield from merge(*map(_in_line, in_line), key=_place)

    def at_length(self) -> Iterator[tuple[JobKey, WaitReasons]]:
        """Tell the first in line who is ahead and what is free at this moment."""
        foremost = islice(self.foremost(), EXPLAINED_MAX)
        for position, (request, rest) in enumerate(foremost, start=1):
            start = _start(request, rest)
            yield (
                request.key,
                WaitReasons(
                    reasons=tuple(reason.moving for reason in _all(rest, request)),
                    position=position,
                    earliest_start=start.at if start else None,
                    confidence=_confidence(start),
                ),
            )


def _in_line(rest: Rest) -> Iterator[tuple[Request, Rest]]:
    return ((request, rest) for request in islice(rest.requests, EXPLAINED_MAX))


def _place(item: tuple[Request, Rest]) -> Place:
    return item[0].place


def _all(rest: Rest, request: Request) -> list[Reason]:
    """List every reason, what would have to change first at the front."""
    verdict = rest.verdict
    found = [*rest.gates, *rest.quota, *(verdict.reasons if verdict else ())]
    ahead = rest.ahead or (verdict.before(request) if verdict else None)
    if ahead is not None and ahead.key != request.key:
        found.append(reasons.priority(ahead))
    return found or [reasons.next_plan()]


def _start(request: Request, rest: Rest) -> Start | None:
    """Only who keeps nodes for itself knows when it may start."""
    verdict = rest.verdict
    if verdict is None or verdict.head.key != request.key or rest.quota:
        return None
    return verdict.start


def _confidence(start: Start | None) -> str:
    return "limit" if start is not None and start.at is not None else "unknown"


def _steady(rest: Rest) -> WaitReasons:
    """Tell those further behind what stays; equal texts are one object.

    What is free changes by the second and is not theirs yet: they hear what they need.
    """
    return _shared(tuple(reason.steady for reason in _lasting(rest)))


def _lasting(rest: Rest) -> list[Reason]:
    verdict, last = rest.verdict, rest.requests[-1]
    if rest.gates:
        kept = [*rest.gates, *rest.quota, *(verdict.reasons if verdict else ())]
        return [reason for reason in kept if reason.code not in _MOVING]
    if verdict is None and not rest.quota and rest.ahead is None:
        return [reasons.next_plan()]
    behind = reasons.priority(rest.ahead or last)
    if verdict is None:
        return [*rest.quota, behind]
    if verdict.reserves:
        return [*rest.quota, reasons.lacks(last.want), behind]
    kept = [r for r in verdict.reasons if r.code not in _MOVING]
    return [*rest.quota, *(kept or verdict.reasons)]


@lru_cache(maxsize=TEXTS_KEPT_MAX)
def _shared(found: tuple[tuple[str, str], ...]) -> WaitReasons:
    told = (WaitReason(code=code, message=message) for code, message in found)
    return WaitReasons(reasons=tuple(told))
