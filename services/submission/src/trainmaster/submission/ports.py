"""What submission needs from outside: a book of keys, and the log's own word."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from trainmaster.core.ids import JobId, JobKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A key that somebody uses for a request; `job` is the id it would get."""

    key: str
    digest: str
    team: str
    job: JobId


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """What stands in the book for a key: whoever came first."""

    digest: str
    job: JobId
    age: timedelta = timedelta()


class KeyBook(Protocol):
    """Remembers which job a key was used for, durably, before the job exists.

    Does not promise that the job of a key was ever stored: a crash may come between.
    """

    async def claim(self, claim: Claim) -> Claimed:
        """Write a claim down unless its key is taken; returns what stands there."""
        ...

    async def release(self, key: str, job: JobId) -> None:
        """Forget a claim whose job was refused."""
        ...


class Submissions(Protocol):
    """Answers from the log itself, also about jobs that left all live state."""

    async def seq_of(self, key: JobKey) -> int:
        """Find where a job's submission is stored, 0 for nowhere."""
        ...
