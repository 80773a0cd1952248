"""Owns the truth about what other systems were answered."""

from typing import Final

from trainmaster.core.ingress import RequestAnswered
from trainmaster.runtime.database import Database
from trainmaster.runtime.truth import Truth
from trainmaster.submission.ingress.envelope import From
from trainmaster.submission.ingress.ports import Known
from trainmaster.submission.ingress.settings import ID_KNOWN_DAYS

_PACKAGE: Final = "trainmaster.submission"
_SCHEMA: Final = "submission_truth"
_SECONDS: Final = 5.0
_RECALL: Final = """
select digest, answer from submission_truth.ingress_answer
where source = $1 and id = $2
"""
# The update changes nothing: it returns the row of whoever came first.
_KEEP: Final = """
insert into submission_truth.ingress_answer (source, id, digest, answer)
values ($1, $2, $3, $4)
on conflict (source, id) do update set id = excluded.id
returning digest, answer
"""
_FORGET: Final = """
delete from submission_truth.ingress_answer
where answered_at < now() - make_interval(days => $1)
"""


class AnswerBook:
    """What each id of each source was answered, in PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._truth = Truth(
            database=database,
            schema=_SCHEMA,
            package=_PACKAGE,
            hint="what other systems say waits on the stream",
            seconds=_SECONDS,
        )

    async def recall(self, sender: From) -> Known | None:
        """Say what an id was answered, None for one that is new."""
        rows = await self._truth.fetch(_RECALL, sender.source, sender.id)
        return next((_known(*row) for row in rows), None)

    async def keep(self, sender: From, known: Known) -> Known:
        """Write an answer down unless there is one; returns what stands there."""
        text = known.answer.to_json().decode()
        [row] = await self._truth.fetch(
            _KEEP, sender.source, sender.id, known.digest, text
        )
        return _known(*row)

    async def forget(self) -> None:
        """Drop what is so old that nobody says it again."""
        await self._truth.fetch(_FORGET, ID_KNOWN_DAYS)


def _known(digest: str, answer: str) -> Known:
    return Known(digest=digest, answer=RequestAnswered.from_json(answer))
