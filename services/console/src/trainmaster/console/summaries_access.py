"""Says who asked, and what was given out, revoked or refused. Pure."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from trainmaster.core.access import (
    ReadRefused,
    Refusal,
    RequestRefused,
    TokenIssued,
    TokenRevoked,
)
from trainmaster.core.events import Event
from trainmaster.core.ids import Key
from trainmaster.core.rights import EVERY_TEAM

_HERE: Final = frozenset({"127.0.0.1", "::1"})


def why(reason: str) -> str:
    """Add a reason, if there is one."""
    return f": {reason}" if reason else ""


def by(event: Any) -> str:
    """Name who asked, and from where unless it was from here."""
    here = not event.origin or event.origin in _HERE
    where = "" if here else f" from {event.origin}"
    return f" by {event.by}{where}" if event.by else where


def _issued(event: TokenIssued, key: Any) -> str:
    where = "every team" if event.team == EVERY_TEAM else f"team {event.team}"
    name = event.name or key.token
    return f"token {name} given out{by(event)}: {event.role} on {where}"


def _refused(event: Refusal, _key: Key) -> str:
    more = f" ({event.suppressed:,} more like it)" if event.suppressed else ""
    what = event.action or event.request or "a request"
    whom = f" to {event.by}" if event.by else ""
    where = f" from {event.origin}" if event.origin else ""
    return f"{what} refused{whom}{where}{why(event.reason)}{more}"


ACCESS: Final[Mapping[type[Event], Callable[[Any, Any], str]]] = {
    TokenIssued: _issued,
    TokenRevoked: lambda v, k: f"token {k.token} revoked{by(v)}{why(v.reason)}",
    RequestRefused: _refused,
    ReadRefused: _refused,
}
