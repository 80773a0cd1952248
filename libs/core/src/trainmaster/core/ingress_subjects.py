"""The spelling of the subjects on which other systems speak and are answered.

As in `subjects`, nothing else may build one or take one apart.
"""

import hashlib
from typing import Final, NamedTuple

from trainmaster.core.ids import TOKEN, JobId, JobKey

_DIGEST_CHARACTERS: Final = 32


class Heard(NamedTuple):
    """Which source said what kind of thing."""

    source: str
    kind: str


def said(source: str, kind: str) -> str:
    """Where a source says something."""
    return f"tm.in.{source}.{kind}"


def everything_said() -> str:
    """All that any source says, as a filter."""
    return "tm.in.>"


def parse_said(subject: str) -> Heard | None:
    """Read who said what kind of thing; None when it is no such subject."""
    match _tokens(subject):
        case ["tm", "in", source, kind]:
            return Heard(source, kind)
        case _:
            return None


def reply(source: str, token: str) -> str:
    """Where a source is answered about one thing it said."""
    return f"tm.in_reply.{source}.{token}"


def reply_token(request: str, seq: int) -> str:
    """Name what was said: its id, if a subject can hold that, or a stand-in."""
    if not request:
        return f"seq-{seq}"
    if TOKEN.fullmatch(request):
        return request
    digest = hashlib.sha256(request.encode(errors="surrogatepass"))
    return digest.hexdigest()[:_DIGEST_CHARACTERS]


def parked(stream: str) -> str:
    """Where messages of a stream are put that nobody could work off."""
    return f"tm.parked.{stream}"


def everything_parked() -> str:
    """All that is parked, as a filter."""
    return "tm.parked.>"


def checkpoint_hint(key: JobKey) -> str:
    """Where it is said that a job has a new checkpoint."""
    return f"tm.hint.checkpoint.{key.team}.{key.job}"


def checkpoint_hints() -> str:
    """Hints about checkpoints of all jobs, as a filter."""
    return "tm.hint.checkpoint.*.*"


def parse_checkpoint_hint(subject: str) -> JobKey | None:
    """Read whose checkpoint it is; None when it is none."""
    match _tokens(subject):
        case ["tm", "hint", "checkpoint", team, job]:
            return JobKey(team, JobId(job))
        case _:
            return None


def _tokens(subject: str) -> list[str]:
    tokens = subject.split(".")
    return tokens if all(map(TOKEN.fullmatch, tokens)) else []
