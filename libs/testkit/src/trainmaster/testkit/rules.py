"""The eight rules that hold for ever, asserted on any history any test produces.

`check_history` reads a whole log and says in sentences what breaks a rule, nothing when
all is well. It holds at every moment, so a log may end anywhere. `check_settled` adds
what must be true once a history has come to rest. Both take entries of all streams in
one sequence, each stream in its own order:

* JOBS is needed; MEMBERS adds what the agents said (exits, closed, started), NODES what
  capacity there was;
* sightings add what really ran (`trainmaster.testkit.sightings`).

Where it is possible a rule is checked on what `evolve` made of the events and on the
events alone, so that a fault in `evolve` is found as well as one in a service.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from trainmaster.core.envelope import Entry
from trainmaster.core.ids import JobKey
from trainmaster.core.job import evolve
from trainmaster.core.record import FINAL, Job, JobState
from trainmaster.testkit.endings import (
    check_cancel,
    check_endings,
    check_final,
    check_old_attempts,
    differences,
)
from trainmaster.testkit.ledger import check_charges
from trainmaster.testkit.replay import Evolve, replay
from trainmaster.testkit.sightings import (
    Seen,
    check_fences,
    check_instants,
    still_alive,
)


def check_history(
    entries: Sequence[Entry], sightings: Seen = (), *, evolve: Evolve = evolve
) -> list[str]:
    """Say what breaks rules 1 to 6 and 8 of the life of a job; [] when all is well."""
    history = replay(entries, evolve)
    found = list(_check_order(entries))
    for steps in history.lives():
        found += check_endings(steps, history)
        found += check_fences(steps)
        found += check_final(steps, history)
        found += check_old_attempts(steps)
        found += check_cancel(steps, history)
    found += check_instants(history, sightings)
    found += check_charges(history)
    found += _check_replay(entries, history.jobs, evolve)
    return found


def check_settled(
    entries: Sequence[Entry],
    sightings: Seen = (),
    *,
    waiting: Mapping[str, Collection[str]] | None = None,
    accepted: Collection[str] = (),
) -> list[str]:
    """Rule 7: every accepted submission is over or visibly waits with a reason.

    `waiting` has the reasons shown for each waiting job's id; a held job waits for its
    user. `accepted` names the jobs whose submitters were told so. Processes may be left
    only where the log says that a node owes its proof.
    """
    jobs = {key.job: job for key, job in replay(entries).jobs.items()}
    reasons = waiting or {}
    found = [
        f"rule 7: job {job}: was accepted and is not on the log"
        for job in sorted(set(accepted) - set(jobs))
    ]
    for job in jobs.values():
        found += _check_rest(job, reasons.get(job.id, ()))
    for place, count in still_alive(sightings).items():
        job = jobs.get(place.job, Job(key=JobKey("", place.job)))
        if place.node not in {m.node for m in job.unreclaimed.get(place.attempt, ())}:
            found.append(f"rule 7: {place}: {count} processes left, nobody waits")
    return found


def voids(entries: Sequence[Entry]) -> list[str]:
    """Say which events did not follow, and why; legal, but seldom what was meant."""
    return [f"{s.where}: {s.void}" for s in replay(entries).steps if s.void]


def _check_order(entries: Sequence[Entry]) -> Iterator[str]:
    """Every stream is in order, and holds every transition once."""
    last: dict[str, int] = {}
    ids: Counter[str] = Counter()
    for entry in entries:
        if entry.seq <= last.get(entry.stream, 0):
            yield f"log: {entry.stream} {entry.seq} after {last[entry.stream]}"
        last[entry.stream] = entry.seq
        ids[entry.id] += entry.family == "job"
    for id_, times in ids.items():
        if times > 1:
            yield f"log: the event {id_} is stored {times} times"


def _check_rest(job: Job, reasons: Collection[str]) -> Iterator[str]:
    """Rule 7 for one job."""
    match job.state:
        case JobState.QUEUED if not any(reasons):
            yield f"rule 7: job {job.id}: waits and nobody says why"
        case JobState.NEW:
            yield f"rule 7: job {job.id}: has events but was never submitted"
        case state if state not in FINAL | {JobState.QUEUED, JobState.HELD}:
            yield f"rule 7: job {job.id}: came to rest in {state}"
        case _:
            pass


def _check_replay(
    entries: Sequence[Entry], jobs: Mapping[JobKey, Job], evolve: Evolve
) -> Iterator[str]:
    """Rule 8: replaying, also from the wire form, gives the same state."""
    again: list[Entry] = []
    for entry in entries:
        where = f"{entry.stream} {entry.seq} {entry.event.kind}"
        try:
            event = type(entry.event).from_json(entry.event.to_json())
        except ValidationError as error:
            yield f"rule 8: {where}: cannot be read back: {error.error_count()} fields"
            continue
        except PydanticSerializationError as error:
            yield f"rule 8: {where}: cannot be written: {error}"
            continue
        if event != entry.event:
            yield f"rule 8: {where}: reads back differently"
        again.append(entry._replace(event=event))
    other = replay(again, evolve).jobs
    for key, job in jobs.items():
        differing = differences(job, other.get(key, Job(key=key)))
        if differing:
            yield f"rule 8: job {key.job}: replay differs in {sorted(differing)}"
