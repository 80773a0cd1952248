"""What may be said about who is let in: tokens that were given out, and refusals.

A token's secret is never said, only its sha256. Because these are facts on the log,
every service that answers over HTTP knows of a revocation as soon as it reads it.
"""

from typing import ClassVar

from pydantic import AwareDatetime

from trainmaster.core.events import Event
from trainmaster.core.model import Int32


class TokenFact(Event):
    """A fact about one token; its key begins the token's digest."""

    family: ClassVar[str] = "token"


class TokenIssued(TokenFact):
    """Whoever holds the secret of `digest` has a role on a team, or on all (`*`)."""

    publisher: ClassVar[str] = "submission"
    digest: str = ""
    name: str = ""
    team: str = ""
    role: str = ""
    expires_at: AwareDatetime | None = None
    by: str = ""
    origin: str = ""


class TokenRevoked(TokenFact):
    """The token opens nothing any more."""

    publisher: ClassVar[str] = "submission"
    by: str = ""
    origin: str = ""
    reason: str = ""


class AuditFact(Event):
    """A fact about a request, below the team it concerned or `-`."""

    family: ClassVar[str] = "audit"


class Refusal(AuditFact):
    """A request that was not let through.

    `suppressed` counts like ones since the last that was told: a flood of them must not
    fill the log.
    """

    by: str = ""
    origin: str = ""
    action: str = ""
    request: str = ""
    status: Int32 = 0
    reason: str = ""
    suppressed: Int32 = 0


class RequestRefused(Refusal):
    """Submission did not do what was asked."""

    publisher: ClassVar[str] = "submission"


class ReadRefused(Refusal):
    """The console did not show what was asked for."""

    publisher: ClassVar[str] = "console"
