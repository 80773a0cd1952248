"""What things are called, and how an event's id follows from its cause.

Sequences are positions and never identities: they change when a log is re-seeded.
Identities are job ids (ULID), attempt numbers and event ids.
"""

import hashlib
import re
from typing import Final, NamedTuple, NewType

from trainmaster.core.errors import InvalidTokenError

JobId = NewType("JobId", str)
EventId = NewType("EventId", str)

TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ID_HEX_DIGITS: Final = 32


class JobKey(NamedTuple):
    """A job and the team it belongs to."""

    team: str
    job: JobId


class TeamKey(NamedTuple):
    """A team."""

    team: str


class PoolKey(NamedTuple):
    """A pool of nodes behind one backend."""

    pool: str


class PlanKey(NamedTuple):
    """The chain of plans of one pool."""

    pool: str


class TokenKey(NamedTuple):
    """A token that lets somebody in, by the beginning of its digest."""

    token: str


class NodeKey(NamedTuple):
    """A node in its pool; the name is a generated token, the host name is a fact."""

    pool: str
    node: str


class MemberKey(NamedTuple):
    """An attempt's part on one node."""

    pool: str
    node: str
    job: JobId
    attempt: int


Key = JobKey | TeamKey | PoolKey | PlanKey | TokenKey | NodeKey | MemberKey


def token(name: str, value: str) -> str:
    """Return `value` if it may stand in a subject, else raise InvalidTokenError."""
    if TOKEN.fullmatch(value) is None:
        raise InvalidTokenError(name=name, value=value)
    return value


def event_id(*, epoch: int, scope: str, head: str, kind: str, cause: str) -> EventId:
    """Derive an event's id from what it was decided on.

    The same decision on the same head always has the same id, so saying it twice is
    harmless. `head` is the id of the last stored event below `scope`, "" for none;
    `cause` tells apart two events of one kind decided on one head.
    """
    text = "\n".join((str(epoch), scope, head, kind, cause))
    return EventId(hashlib.sha256(text.encode()).hexdigest()[:_ID_HEX_DIGITS])
