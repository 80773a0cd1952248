"""What keeps one request from being considered, whatever is free.

Every gate is one small function of a request and the snapshot. One more kind of gate
(jobs it waits for, how many of an array run at once) is one more function in `_GATES`
and one more field of the request; a request with such a field is `alone`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from trainmaster.core.ids import TeamKey
from trainmaster.scheduler import words
from trainmaster.scheduler.settings import TEAM_DEPTH_MAX
from trainmaster.scheduler.snapshot import Request, Snapshot
from trainmaster.scheduler.teams import Team
from trainmaster.scheduler.words import Reason

_NO_TEAM: Final = Team()


def gates(request: Request, snapshot: Snapshot) -> tuple[Reason, ...]:
    """Name all that keeps a request from taking part in this plan."""
    return tuple(reason for gate in _GATES for reason in gate(request, snapshot))


def opens_at(request: Request, snapshot: Snapshot) -> Iterator[datetime]:
    """Say when time alone may open a gate."""
    if request.not_before is not None:
        yield request.not_before
    for _, team in _above(request.key.team, snapshot):
        if team.paused and team.until is not None:
            yield team.until


def _above(name: str, snapshot: Snapshot) -> Iterator[tuple[str, Team]]:
    seen = 0
    while name and seen < TEAM_DEPTH_MAX:
        team = snapshot.teams.get(TeamKey(name), _NO_TEAM)
        yield name, team
        name, seen = team.parent, seen + 1


def _paused(request: Request, snapshot: Snapshot) -> Iterator[Reason]:
    for name, team in _above(request.key.team, snapshot):
        if team.paused and (team.until is None or team.until > snapshot.now):
            end = f" until {words.time(team.until)}" if team.until else ""
            yield Reason(code=words.PAUSED, now=f"team {name} is paused{end}")


def _backs_off(request: Request, snapshot: Snapshot) -> Iterator[Reason]:
    if request.not_before is not None and request.not_before > snapshot.now:
        now = f"backs off until {words.time(request.not_before)}"
        yield Reason(code=words.BACKOFF, now=now)


def _restores(request: Request, _snapshot: Snapshot) -> Iterator[Reason]:
    if request.resume_from:
        now = f"waits for the restore point in {request.resume_from}"
        yield Reason(code=words.RESTORE_POINT, now=now)


def _spent(request: Request, snapshot: Snapshot) -> Iterator[Reason]:
    for name, team in _above(request.key.team, snapshot):
        budget = team.budget
        if budget.amount < 0 or budget.policy != "hold":
            continue
        spent = spending(name, snapshot)
        if spent >= budget.amount:
            unit = f" {budget.currency}" if budget.currency else ""
            yield Reason(
                code=words.BUDGET,
                now=f"team {name} spent {spent:.2f} of {budget.amount:.2f}{unit}",
                always=f"team {name} spent its budget of {budget.amount:.2f}{unit}",
                numbers={"spent": spent, "amount": budget.amount},
            )


def spending(team: str, snapshot: Snapshot) -> float:
    """Sum up what a team and those below it cost so far, in all pools."""
    return sum(
        used.seconds(snapshot.now) / 3600 * snapshot.prices.get(pool, 0.0)
        for key, use in snapshot.use.items()
        if any(name == team for name, _ in _above(key.team, snapshot))
        for pool, used in use.by_pool.items()
    )


@dataclass(slots=True)
class Gatekeeper:
    """Asks the gates once for all requests of a team that differ in nothing there."""

    snapshot: Snapshot
    _teams: dict[str, tuple[Reason, ...]] = field(
        default_factory=dict[str, tuple[Reason, ...]]
    )

    def asks(self, request: Request) -> tuple[Reason, ...]:
        """Name all that keeps a request from taking part in this plan."""
        if request.alone:
            return gates(request, self.snapshot)
        team = request.key.team
        known = self._teams.get(team)
        if known is None:
            known = self._teams[team] = gates(request, self.snapshot)
        return known


_Gate = Callable[[Request, Snapshot], Iterator[Reason]]
_GATES: Final[tuple[_Gate, ...]] = (_paused, _spent, _backs_off, _restores)
