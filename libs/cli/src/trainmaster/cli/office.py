"""Owns what the commands of teams, pools and tokens do and show."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from trainmaster.cli import words
from trainmaster.cli.exits import UsageError
from trainmaster.cli.output import Column, Format, say, show_data, show_rows
from trainmaster.cli.output import write as put
from trainmaster.cli.remote import connect
from trainmaster.core.errors import NotFoundError

if TYPE_CHECKING:
    from trainmaster.client.shapes import OfficeChange, TokenRow

_DURATION: Final = re.compile(r"([1-9][0-9]{0,5})([smhdw])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_DATA: Final = frozenset({Format.JSON, Format.YAML})


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """What a team may hold of a pool."""

    team: str
    pool: str
    accelerators: int
    borrowing: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToken:
    """A token as it is wanted."""

    name: str
    team: str
    role: str
    expires: str


def seconds_of(text: str, option: str) -> float:
    """Read a duration such as 90d. Raises UsageError."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise UsageError(
            problem=f"{option} {text!r} is no duration",
            hint="write a number and a unit: 30m, 12h, 90d, 4w",
        )
    return float(int(found[1]) * _SECONDS[found[2]])


def settings(**told: Any) -> dict[str, Any]:
    """Keep what was told."""
    return {name: value for name, value in told.items() if value is not None}


# ----------------------------------------------------------------------------- teams


def list_teams(data: Path | None, *, how: Format) -> None:
    """Show teams."""
    with connect(data) as client:
        show_rows(
            client.office.teams(),
            TEAM_COLUMNS,
            how=how,
            name=lambda row: str(row["team"]),
            empty="No team that this token may see.",
        )


def _quotas(row: Mapping[str, Any]) -> str:
    told = [
        f"{pool}: {_limit(quota)}"
        for pool, quota in words.as_fields(row.get("quotas")).items()
    ]
    return ", ".join(told) or words.NONE


def _limit(quota: Mapping[str, Any]) -> str:
    most = "no limit" if quota["accelerators"] < 0 else str(quota["accelerators"])
    return f"{most} (+{quota['borrowing']})" if quota["borrowing"] else most


def _paused(row: Mapping[str, Any]) -> str:
    if not row.get("paused"):
        return words.NONE
    return f"until {words.day(row['until'])}" if row.get("until") else "yes"


TEAM_COLUMNS = (
    Column(title="TEAM", of=lambda r: words.text(r, "team")),
    Column(title="BELOW", of=lambda r: words.text(r, "parent")),
    Column(title="PAUSED", of=_paused),
    Column(title="ACCELERATORS", of=_quotas),
    Column(title="CREATED", of=lambda r: words.day(r.get("created_at")), wide=True),
    Column(title="BY", of=lambda r: words.text(r, "by"), wide=True),
)


def create_team(data: Path | None, team: str, *, parent: str, how: Format) -> None:
    """Create a team and say what to do with it."""
    with connect(data) as client:
        done = client.office.create_team(team, parent=parent)
        _tell(done, f"team {team}: created", how)
        if how is Format.TABLE and done["changed"]:
            say(
                f"Bound it: tm teams quota {team} ACCELERATORS; let somebody in: "
                f"tm tokens create NAME --team {team} --role submitter"
            )


def pause_team(data: Path | None, team: str, *, duration: str, how: Format) -> None:
    """Pause a team, by the server's time."""
    with connect(data) as client:
        until = None
        if duration:
            seconds = seconds_of(duration, "--for")
            client.office.teams()  # whose answer tells the server's time
            if client.server_time is not None:
                until = client.server_time + timedelta(seconds=seconds)
        done = client.office.pause_team(team, until=until)
        _tell(done, f"team {team}: paused", how)
        if how is Format.TABLE and done["changed"]:
            say(f"Jobs that run go on. Let it go on: tm teams resume {team}")


def resume_team(data: Path | None, team: str, *, how: Format) -> None:
    """Let a team go on."""
    with connect(data) as client:
        _tell(client.office.resume_team(team), f"team {team}: goes on", how)


def set_quota(data: Path | None, wanted: Quota, *, how: Format) -> None:
    """Bound a team."""
    with connect(data) as client:
        done = client.office.set_quota(
            wanted.team, wanted.pool, wanted.accelerators, borrowing=wanted.borrowing
        )
        _tell(done, f"team {wanted.team}: quota of {wanted.pool} set", how)


# ----------------------------------------------------------------------------- pools


def list_pools(data: Path | None, *, how: Format) -> None:
    """Show pools."""
    with connect(data) as client:
        show_rows(
            client.office.pools(),
            POOL_COLUMNS,
            how=how,
            name=lambda row: str(row["pool"]),
            empty="No pools yet: tm pools create NAME",
        )


def _ports(row: Mapping[str, Any]) -> str:
    first, last = row.get("port_first"), row.get("port_last")
    return f"{first}-{last}" if first or last else "any"


POOL_COLUMNS = (
    Column(title="POOL", of=lambda r: words.text(r, "pool")),
    Column(title="BACKEND", of=lambda r: words.text(r, "backend")),
    Column(title="PORTS", of=_ports),
    Column(title="CREATED", of=lambda r: words.day(r.get("created_at")), wide=True),
    Column(title="BY", of=lambda r: words.text(r, "by"), wide=True),
)


def create_pool(
    data: Path | None, pool: str, settings: Mapping[str, Any], *, how: Format
) -> None:
    """Create a pool."""
    with connect(data) as client:
        done = client.office.create_pool(pool, **settings)
        _tell(done, f"pool {pool}: created", how)
        if how is Format.TABLE and done["changed"]:
            say(f"It has no nodes before an agent with TM_POOL={pool} registers.")


def change_pool(
    data: Path | None, pool: str, settings: Mapping[str, Any], *, how: Format
) -> None:
    """Change a pool."""
    if not settings:
        raise UsageError(
            problem="nothing to change was told",
            hint="use --backend, --port-first or --port-last",
        )
    with connect(data) as client:
        done = client.office.change_pool(pool, **settings)
        _tell(done, f"pool {pool}: changed", how)


# ---------------------------------------------------------------------------- tokens


def list_tokens(data: Path | None, *, how: Format) -> None:
    """Show tokens."""
    with connect(data) as client:
        show_rows(
            client.office.tokens(),
            TOKEN_COLUMNS,
            how=how,
            name=lambda row: str(row["name"]),
            empty="No tokens were given out: tm tokens create NAME",
        )


TOKEN_COLUMNS = (
    Column(title="NAME", of=lambda r: words.text(r, "name")),
    Column(title="ID", of=lambda r: words.text(r, "id")),
    Column(title="TEAM", of=lambda r: words.text(r, "team")),
    Column(title="ROLE", of=lambda r: words.text(r, "role")),
    Column(title="STATE", of=lambda r: words.text(r, "state")),
    Column(title="EXPIRES", of=lambda r: words.day(r.get("expires_at"))),
    Column(title="BY", of=lambda r: words.text(r, "by"), wide=True),
    Column(title="ISSUED", of=lambda r: words.day(r.get("issued_at")), wide=True),
    Column(title="REVOKED", of=lambda r: words.day(r.get("revoked_at")), wide=True),
)


def create_token(data: Path | None, wanted: NewToken, *, how: Format) -> None:
    """Have a token given out; the secret alone is on standard output."""
    seconds = seconds_of(wanted.expires, "--expires")
    with connect(data) as client:
        given = client.office.create_token(
            wanted.name, team=wanted.team, role=wanted.role, expires_in_seconds=seconds
        )
        if how in _DATA:
            show_data(given, how)
            return
        put(f"{given['token']}\n")
        say(
            f"This is token `{given['name']}`: {given['role']} on {given['team']}, "
            f"until {words.day(given['expires_at'])}. It is shown only now.\n"
            f"Use it: export TM_URL={client.url} TM_TOKEN=…; "
            f"revoke it: tm tokens revoke {given['name']}"
        )


def revoke_tokens(
    data: Path | None, references: Sequence[str], *, reason: str, how: Format
) -> None:
    """Revoke tokens, one after the other."""
    with connect(data) as client:
        known = client.office.tokens()
        for reference in references:
            token = _meant(known, reference)
            done = client.office.revoke_token(token["id"], reason=reason)
            _tell(done, f"token {token['name']} ({token['id']}): revoked", how)


def _meant(known: Sequence["TokenRow"], reference: str) -> "TokenRow":
    """Find the token that is meant; a name means the one that still opens something."""
    named = [row for row in known if row["name"] == reference]
    valid = [row for row in named if row["state"] == "valid"]
    begun = [row for row in known if row["id"].startswith(reference)]
    for found in (valid, named[:1], begun):
        if len(found) == 1:
            return found[0]
    if begun:
        ids = ", ".join(row["id"] for row in begun)
        raise UsageError(
            problem=f"{reference!r} begins the ids of several tokens",
            hint=f"write more of one of them: {ids}",
        )
    raise NotFoundError(kind="token", name=reference, hint="see `tm tokens list`")


def _tell(done: "OfficeChange", said: str, how: Format) -> None:
    if how in _DATA:
        show_data(done, how)
    elif how is Format.NAME:
        put(f"{done['name']}\n")
    else:
        put(f"{said if done['changed'] else done['message']}\n")
