"""What the gate asks of an identity provider, and what it may hear."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from trainmaster.core.errors import PermanentError
from trainmaster.core.rights import Grant


class IdentityRefusedError(PermanentError):
    """Nobody vouches for this token."""

    def __init__(self, *, problem: str, hint: str) -> None:
        super().__init__(f"the identity token {problem}; {hint}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Whom the provider vouches for, and until when."""

    subject: str
    grants: tuple[Grant, ...]
    expires_at: datetime


class Identities(Protocol):
    """Reads identity tokens; does not promise to know of one that was withdrawn."""

    async def identify(self, token: str) -> Identity:
        """Read a token. Raises IdentityRefusedError and UnreachableError."""
        ...
