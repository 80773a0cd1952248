"""Rule 2: at most one attempt of a job runs at any instant, measured at the backend.

The measure is a list of sightings: each process of a rank that was really spawned and
each that was really gone, with the machine's own time. One line per process; `gone` is
when the system knew it, not when somebody looked.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from typing_extensions import override

from trainmaster.core.events import (
    AttemptReclaimed,
    CheckpointChosen,
    Requeued,
    StartOrdered,
)
from trainmaster.core.ids import JobId
from trainmaster.core.record import Job, JobState
from trainmaster.testkit.replay import Replay, Step


class Sighting(NamedTuple):
    """A process of one attempt came to be ("spawn") or was gone ("gone")."""

    time: datetime
    job: str
    attempt: int
    node: str
    what: str


Seen = Sequence[tuple[datetime, str, int, str, str]]
"""Sightings, or plain tuples of the same shape."""


class Place(NamedTuple):
    """An attempt's part on one node."""

    job: JobId
    attempt: int
    node: str

    @override
    def __str__(self) -> str:
        """Name it for people."""
        return f"attempt {self.attempt} of job {self.job} on {self.node}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Log:
    """What the log says about places: who they belong to, since when, until when."""

    given: Mapping[Place, None]
    ordered: Mapping[tuple[JobId, int], datetime]
    given_back: Mapping[Place, datetime]
    closed: Mapping[Place, datetime]


def check_instants(history: Replay, seen: Seen) -> Iterator[str]:
    """Rule 2, and that what was proven gone was gone.

    * two attempts of one job never have processes at the same instant;
    * a process is spawned only on a node of its attempt and after `start_ordered`;
    * once a node has closed an attempt or was given back, none of it lives there.
    """
    log = _read(history)
    for (job, attempt), reports in history.reports.items():
        if reports.started and (job, attempt) not in log.ordered:
            yield f"rule 2: job {job}: attempt {attempt} started, no `start_ordered`"
    by_place = _by_place(seen)
    by_job: dict[JobId, list[tuple[Place, Sighting]]] = defaultdict(list)
    for place, lines in by_place.items():
        by_job[place.job].extend((place, line) for line in lines)
    for lines_of_job in by_job.values():
        yield from _overlaps(lines_of_job, log)
    for word, moments in (("given back", log.given_back), ("closed", log.closed)):
        for place, moment in moments.items():
            yield from _false_proof(place, moment, by_place.get(place, []), word)


def still_alive(seen: Seen) -> Mapping[Place, int]:
    """Count the processes that were spawned and never seen gone."""
    alive = {place: _alive(lines) for place, lines in _by_place(seen).items()}
    return {place: count for place, count in alive.items() if count > 0}


def _by_place(seen: Seen) -> dict[Place, list[Sighting]]:
    """Sort sightings by place and time; at one instant the gone come first."""
    by_place: dict[Place, list[Sighting]] = defaultdict(list)
    for each in sorted((Sighting(*line) for line in seen), key=_order):
        by_place[Place(JobId(each.job), each.attempt, each.node)].append(each)
    return by_place


def _alive(lines: Iterable[Sighting]) -> int:
    return sum(1 if line.what == "spawn" else -1 for line in lines)


def _overlaps(lines: list[tuple[Place, Sighting]], log: _Log) -> Iterator[str]:
    """Walk the processes of one job through time."""
    alive: Counter[Place] = Counter()
    for place, (time, *_, what) in sorted(lines, key=lambda line: _order(line[1])):
        if what == "gone":
            alive[place] -= 1
            if alive[place] < 0:
                yield f"rule 2: {place}: more processes gone than spawned at {time}"
            continue
        yield from _spawned(place, time, log)
        for other, count in alive.items():
            if count > 0 and other.attempt != place.attempt:
                yield f"rule 2: {place} spawned at {time} while {other} was alive"
        alive[place] += 1


def _order(line: Sighting) -> tuple[datetime, bool]:
    return line.time, line.what == "spawn"


def _read(history: Replay) -> _Log:
    given: dict[Place, None] = {}
    ordered: dict[tuple[JobId, int], datetime] = {}
    given_back: dict[Place, datetime] = {}
    for step in filter(lambda step: step.counts, history.steps):
        job = step.key.job
        match step.event:
            case StartOrdered(attempt=attempt):
                ordered.setdefault((job, attempt), step.entry.time)
                given |= dict.fromkeys(
                    Place(job, attempt, node) for node in step.after.nodes
                )
            case AttemptReclaimed(attempt=attempt, nodes=nodes):
                for node in nodes:
                    given_back[Place(job, attempt, node)] = step.entry.time
            case _:
                pass
    closed = {
        Place(job, attempt, node): entry.time
        for (job, attempt), reports in history.reports.items()
        for node, (entry, _) in reports.closed.items()
    }
    return _Log(given=given, ordered=ordered, given_back=given_back, closed=closed)


def _spawned(place: Place, time: datetime, log: _Log) -> Iterator[str]:
    since = log.ordered.get((place.job, place.attempt))
    if since is None or time < since:
        yield f"rule 2: {place} spawned at {time} without `start_ordered`"
    elif place not in log.given:
        yield f"rule 2: {place} spawned at {time}, but the node is not the attempt's"


def _false_proof(
    place: Place, moment: datetime, lines: list[Sighting], word: str
) -> Iterator[str]:
    """Tell whether processes lived when their node was said to have none."""
    lived = _alive(line for line in lines if line.time <= moment)
    later = [line for line in lines if line.time > moment and line.what == "spawn"]
    if lived > 0:
        yield f"rule 2: {place}: {word} at {moment} with {lived} alive"
    if later:
        yield f"rule 2: {place}: {word} at {moment}, spawned at {later[0].time}"


# ---------------------------------------------------------------- what guards the rule


def check_fences(steps: Sequence[Step]) -> Iterator[str]:
    """Nothing goes on before every node of the old attempt is proven or fenced."""
    chosen: dict[int, set[str]] = {}
    for step in filter(lambda step: step.counts, steps):
        match step.event:
            case CheckpointChosen(attempt=attempt) if _was_started(step.before):
                chosen[attempt] = set(step.before.owes_proof())
            case Requeued(attempt=attempt, fenced=fenced):
                open_ = set(step.before.owes_proof()) - set(fenced)
                early = chosen.get(attempt, set()) - set(fenced) - open_
                for node in sorted(open_):
                    yield f"rule 2: {step.where}: no proof and no fence of {node}"
                for node in sorted(early):
                    yield f"rule 2: {step.where}: restore point chosen before {node}"
            case _:
                pass


def _was_started(job: Job) -> bool:
    return job.state is JobState.SETTLING and job.start is not None
