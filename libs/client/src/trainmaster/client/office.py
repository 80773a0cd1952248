"""Owns the questions about teams, pools and tokens: `client.office.teams()`."""

from datetime import datetime
from typing import Any, Final, cast
from urllib.parse import quote

from trainmaster.client.shapes import (
    GivenToken,
    OfficeChange,
    ParkedMessage,
    ParkedRow,
    PoolRow,
    RefusalRow,
    TeamRow,
    TokenRow,
)
from trainmaster.client.wire import Wire

_PREFIX: Final = "/api/v1"


class Office:
    """What administrators ask of a server."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def teams(self) -> list[TeamRow]:
        """List the teams that this token may see."""
        return cast("list[TeamRow]", self._list("teams"))

    def create_team(self, team: str, *, parent: str = "") -> OfficeChange:
        """Create a team; asking again changes nothing."""
        return self._change("teams", {"team": team, "parent": parent})

    def pause_team(self, team: str, *, until: datetime | None = None) -> OfficeChange:
        """Have none of a team's jobs placed, until a time or until it is resumed."""
        body = {} if until is None else {"until": until.isoformat()}
        return self._change(f"teams/{quote(team, safe='')}/pause", body)

    def resume_team(self, team: str) -> OfficeChange:
        """Have a team's jobs placed again."""
        return self._change(f"teams/{quote(team, safe='')}/resume", {})

    def set_quota(
        self, team: str, pool: str, accelerators: int, *, borrowing: int = 0
    ) -> OfficeChange:
        """Bound how many accelerators of a pool a team may hold; -1 is no limit."""
        body = {"pool": pool, "accelerators": accelerators, "borrowing": borrowing}
        return self._change(f"teams/{quote(team, safe='')}/quota", body)

    def pools(self) -> list[PoolRow]:
        """List pools."""
        return cast("list[PoolRow]", self._list("pools"))

    def create_pool(self, pool: str, **settings: Any) -> OfficeChange:
        """Create a pool: `backend`, `port_first`, `port_last`."""
        return self._change("pools", {"pool": pool, **settings})

    def change_pool(self, pool: str, **settings: Any) -> OfficeChange:
        """Change a pool; what is not told stays."""
        return self._change(f"pools/{quote(pool, safe='')}/change", settings)

    def tokens(self) -> list[TokenRow]:
        """List the tokens of teams whose tokens this one may see."""
        return cast("list[TokenRow]", self._list("tokens"))

    def create_token(
        self, name: str, *, team: str, role: str, expires_in_seconds: float = 0.0
    ) -> GivenToken:
        """Have a token given out; its secret is in the answer and nowhere else."""
        body: dict[str, Any] = {"name": name, "team": team, "role": role}
        if expires_in_seconds:
            body["expires_in_seconds"] = expires_in_seconds
        answer = self._wire.ask("POST", f"{_PREFIX}/tokens", json=body)
        return cast("GivenToken", answer.json())

    def revoke_token(self, token_id: str, *, reason: str = "") -> OfficeChange:
        """Let nobody in with a token any more; asking again changes nothing."""
        body = {"reason": reason} if reason else {}
        return self._change(f"tokens/{quote(token_id, safe='')}/revoke", body)

    def refusals(self, *, limit: int = 100) -> list[RefusalRow]:
        """List what was refused to whom, the newest first."""
        return cast("list[RefusalRow]", self._list("refusals", limit=limit))

    def parked(self, *, after: int = 0, limit: int = 50) -> list[ParkedRow]:
        """List messages nobody could work off, oldest first, after a number."""
        return cast("list[ParkedRow]", self._list("parked", after=after, limit=limit))

    def parked_message(self, number: int) -> ParkedMessage:
        """Show one of them whole."""
        answer = self._wire.ask("GET", f"{_PREFIX}/parked/{number}")
        return cast("ParkedMessage", answer.json())

    def replay_parked(self, number: int) -> ParkedRow:
        """Have it said again as it was; it is parked no more, unless it fails again."""
        answer = self._wire.ask("POST", f"{_PREFIX}/parked/{number}/replay", json={})
        return cast("ParkedRow", answer.json())

    def _list(self, what: str, **params: int) -> list[dict[str, Any]]:
        answer = self._wire.ask("GET", f"{_PREFIX}/{what}", params=params)
        rows: list[dict[str, Any]] = answer.json()[what]
        return rows

    def _change(self, path: str, body: dict[str, Any]) -> OfficeChange:
        answer = self._wire.ask("POST", f"{_PREFIX}/{path}", json=body)
        return cast("OfficeChange", answer.json())
