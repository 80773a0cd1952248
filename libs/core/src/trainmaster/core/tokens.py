"""Owns what a token is: how its secret becomes a name, and what the log says of it.

A secret is 32 random bytes, so its plain sha256 tells nothing of it. The key in a
subject is the beginning of the digest; whoever is let in is compared with all of it.
"""

import hashlib
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from trainmaster.core.access import TokenIssued, TokenRevoked
from trainmaster.core.envelope import Entry
from trainmaster.core.ids import TokenKey
from trainmaster.core.rights import Grant, role_named

SECRET_PREFIX: Final = "tm_"  # noqa: S105 - so that scanners and people know it
_KEY_CHARACTERS: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """One token as the log tells it; times are the server's."""

    digest: str
    name: str
    team: str
    role: str
    issued_at: datetime
    expires_at: datetime | None = None
    by: str = ""
    revoked_at: datetime | None = None

    @property
    def grants(self) -> tuple[Grant, ...]:
        """What it allows; a role of a later release allows nothing."""
        role = role_named(self.role)
        return () if role is None else (Grant(team=self.team, role=role),)

    def expired(self, now: datetime) -> bool:
        """Tell whether its time is over."""
        return self.expires_at is not None and now >= self.expires_at

    def opens(self, now: datetime) -> bool:
        """Tell whether it still lets anybody in."""
        return self.revoked_at is None and not self.expired(now)

    def state(self, now: datetime) -> str:
        """Say in a word how it is."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expired(now) else "valid"


def digest_of(secret: str) -> str:
    """Name a secret without telling it."""
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()


def key_of(digest: str) -> TokenKey:
    """Name a token by the beginning of its digest."""
    return TokenKey(digest[:_KEY_CHARACTERS])


def fold_token(tokens: dict[TokenKey, Token], entry: Entry) -> bool:
    """Take one event in; says whether it changed anything. Never raises."""
    if not isinstance(entry.key, TokenKey):
        return False
    key, event = entry.key, entry.event
    known = tokens.get(key)
    match event:
        case TokenIssued() if known is None and key_of(event.digest) == key:
            tokens[key] = Token(
                digest=event.digest,
                name=event.name,
                team=event.team,
                role=event.role,
                issued_at=entry.time,
                expires_at=event.expires_at,
                by=event.by,
            )
        case TokenRevoked() if known is not None and known.revoked_at is None:
            tokens[key] = replace(known, revoked_at=entry.time)
        case _:
            return False
    return True
