"""What acting on other systems' messages needs from outside."""

from dataclasses import dataclass
from typing import Protocol

from trainmaster.core.ids import JobKey, NodeKey
from trainmaster.core.ingress import CheckpointSaved, RequestAnswered
from trainmaster.core.messages import MetricSample
from trainmaster.core.nodes import Node
from trainmaster.core.record import Job
from trainmaster.core.subjects import RankStream
from trainmaster.submission.ingress.envelope import From


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What was answered to an id before, and to which content."""

    digest: str
    answer: RequestAnswered


class Answers(Protocol):
    """Remembers durably what each id of each source was answered.

    Every call may raise UnreachableError. Does not promise that an answer was sent.
    """

    async def recall(self, sender: From) -> Known | None:
        """Say what an id was answered, None for one that is new."""
        ...

    async def keep(self, sender: From, known: Known) -> Known:
        """Write an answer down unless there is one; returns what stands there."""
        ...


class Sight(Protocol):
    """What the log says of jobs and nodes now. Raises NotReadyError."""

    def job(self, key: JobKey) -> Job | None:
        """Look at a live job."""
        ...

    def node(self, key: NodeKey) -> Node | None:
        """Look at a node."""
        ...


class Speaker(Protocol):
    """Says what is not on the log. Every call may raise UnreachableError."""

    async def metric(
        self, sender: From, place: RankStream, sample: MetricSample
    ) -> None:
        """Say a rank's metrics as its node would; again is harmless."""
        ...

    async def hint(self, key: JobKey, saved: CheckpointSaved) -> None:
        """Say that there may be a new checkpoint; it may get lost."""
        ...

    async def answer(self, sender: From, seq: int, answer: RequestAnswered) -> None:
        """Tell a source what became of what it said."""
        ...
