"""Decides how teams, pools, tokens and refusals read as JSON, and who may see which.

Pure. A token is shown without its secret, which nobody has, and without its digest.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Protocol

from trainmaster.console.state import State, Told
from trainmaster.core.access import AuditFact, Refusal
from trainmaster.core.envelope import Entry
from trainmaster.core.ids import JobKey, MemberKey, PoolKey, TeamKey, TokenKey
from trainmaster.core.rights import Action
from trainmaster.core.teams import Pool, Team
from trainmaster.core.tokens import Token

Json = dict[str, Any]
Sees = Callable[[str], bool]
"""Tells whether whoever asks may know of a team's jobs."""


class Asker(Protocol):
    """Who asks, as far as it decides what is shown."""

    def may(self, action: Action, team: str = "") -> bool:
        """Say whether they may do this to a team."""
        ...

    def sees(self, team: str) -> bool:
        """Say whether they may know of a team's jobs."""
        ...


def team_rows(state: State, asker: Asker, now: datetime) -> list[Json]:
    """Tell the teams that may be seen, by name."""
    seen = (key for key in sorted(state.teams) if asker.sees(key.team))
    return [_team(key, state.teams[key], now) for key in seen]


def _team(key: TeamKey, team: Team, now: datetime) -> Json:
    paused = team.paused and (team.until is None or now < team.until)
    return {
        "team": key.team,
        "parent": team.parent,
        "paused": paused,
        "until": _time(team.until) if paused else None,
        "quotas": {
            pool: {"accelerators": quota.accelerators, "borrowing": quota.borrowing}
            for pool, quota in sorted(team.quotas.items())
        },
        "by": team.by,
        "created_at": team.created_at.isoformat(),
    }


def pool_rows(state: State) -> list[Json]:
    """Tell the pools, by name."""
    return [_pool(key, state.pools[key]) for key in sorted(state.pools)]


def _pool(key: PoolKey, pool: Pool) -> Json:
    return {
        "pool": key.pool,
        "backend": pool.backend,
        "port_first": pool.port_first,
        "port_last": pool.port_last,
        "by": pool.by,
        "created_at": pool.created_at.isoformat(),
    }


def token_rows(state: State, asker: Asker, now: datetime) -> list[Json]:
    """Tell the tokens of teams whose tokens may be seen, the newest first."""
    newest = sorted(state.tokens.items(), key=lambda pair: pair[1].issued_at)
    return [
        _token(key, token, now)
        for key, token in reversed(newest)
        if asker.may(Action.TOKEN_VIEW, token.team)
    ]


def _token(key: TokenKey, token: Token, now: datetime) -> Json:
    return {
        "id": key.token,
        "name": token.name,
        "team": token.team,
        "role": token.role,
        "state": token.state(now),
        "issued_at": token.issued_at.isoformat(),
        "expires_at": _time(token.expires_at),
        "revoked_at": _time(token.revoked_at),
        "by": token.by,
    }


def refusal_rows(entries: Iterable[Entry], asker: Asker) -> list[Json]:
    """Tell the refusals that may be seen, the newest first."""
    rows = [
        {"time": entry.time.isoformat(), "team": entry.key.team, **_refusal(event)}
        for entry in entries
        if isinstance(entry.key, TeamKey)
        and isinstance(event := entry.event, Refusal)
        and asker.may(Action.REFUSAL_VIEW, entry.key.team)
    ]
    return rows[::-1]


def _refusal(event: Refusal) -> Json:
    return event.model_dump(mode="json")


def audible(state: State, told: Told, asker: Asker) -> bool:
    """Say whether whoever follows all that happens may hear of this."""
    entry = told.entry
    match entry.key:
        case JobKey(team=team):
            return asker.sees(team)
        case MemberKey(job=job):
            keys = state.jobs.with_prefix(job)
            return asker.sees(next((key.team for key in keys), ""))
        case TeamKey(team=team) if isinstance(entry.event, AuditFact):
            return asker.may(Action.REFUSAL_VIEW, team)
        case TeamKey(team=team):
            return asker.sees(team)
        case TokenKey() as key:
            token = state.tokens.get(key)
            return asker.may(Action.TOKEN_VIEW, token.team if token else "")
        case _:
            return True  # nodes and pools are everybody's


def _time(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()
