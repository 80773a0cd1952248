"""What one plan is made from: who waits, in which order, and what nodes have free."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

from trainmaster.core.ids import JobKey
from trainmaster.core.record import Job

_INT32_MAX: Final = 2**31 - 1


class Want(NamedTuple):
    """What one attempt needs on each of its nodes. Equal wants are decided once.

    `avoid` is a preference. `owing` nodes still owe proof of an older attempt of the
    same job: they are never used, so that two attempts cannot meet on one node.
    """

    nodes: int
    accelerators: int
    cpus: int
    memory_bytes: int
    avoid: tuple[str, ...] = ()
    owing: tuple[str, ...] = ()


class Place(NamedTuple):
    """Where a job stands: higher priority first, then who came first, then by id."""

    priority_negated: int
    submitted_at: datetime
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One waiting job, as far as a plan needs it."""

    key: JobKey
    place: Place
    attempt: int
    want: Want
    ranks_per_node: int
    not_before: datetime | None = None
    resume_from: str = ""

    @property
    def alone(self) -> bool:
        """It may wait for something of its own, so no equal ones stand behind it."""
        return bool(self.not_before or self.resume_from)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Requests of one team with one want, in order; one that is alone has its own."""

    team: str
    want: Want
    requests: tuple[Request, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """One node: what it has, what is free, and why it takes nothing, if so."""

    node: str
    accelerators: int = 0
    cpus: int = 0
    memory_bytes: int = 0
    devices_free: tuple[int, ...] = ()
    cpus_free: int = 0
    memory_free_bytes: int = 0
    trouble: str = ""

    def suits(self, want: Want) -> bool:
        """Tell whether the empty node could take a member."""
        return (
            self.accelerators >= want.accelerators
            and self.cpus >= want.cpus
            and self.memory_bytes >= want.memory_bytes
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All that a plan of one pool depends on. `paused` teams place nothing at `now`."""

    pool: str
    now: datetime
    rooms: Mapping[str, Room] = field(default_factory=dict[str, Room])
    lines: tuple[Line, ...] = ()
    paused: Mapping[str, datetime | None] = field(
        default_factory=dict[str, datetime | None]
    )


def request_of(job: Job) -> Request:
    """Turn a waiting job into a request for its next attempt."""
    spec, owing = job.spec, {m.node for ms in job.unreclaimed.values() for m in ms}
    numbers = (spec.accelerators_per_node, spec.cpus_per_node, spec.ranks_per_node)
    sane = min(*numbers, spec.memory_bytes_per_node) >= 0 and spec.ranks <= _INT32_MAX
    return Request(
        key=job.key,
        place=Place(-job.priority, job.submitted_at, job.key.job),
        attempt=job.attempt + 1,
        want=Want(
            nodes=spec.nodes if sane else 0,
            accelerators=spec.accelerators_per_node,
            cpus=spec.cpus_per_node,
            memory_bytes=spec.memory_bytes_per_node,
            avoid=tuple(sorted(set(job.avoid))),
            owing=tuple(sorted(owing)),
        ),
        ranks_per_node=spec.ranks_per_node,
        not_before=job.not_before,
        resume_from=_awaited(job),
    )


def _awaited(job: Job) -> str:
    """Name the restore point that a first attempt waits for, "" for none."""
    if job.attempt or job.chosen is not None:
        return ""
    return job.spec.checkpoint.resume_from


def lines_of(requests: Iterable[Request]) -> tuple[Line, ...]:
    """Stand requests in lines; the order they come in does not matter."""
    shared: dict[tuple[str, Want], list[Request]] = {}
    alone: list[Request] = []
    for request in sorted(requests, key=lambda r: r.place):
        if request.alone:
            alone.append(request)
        else:
            shared.setdefault((request.key.team, request.want), []).append(request)
    return (
        *(Line(team=t, want=w, requests=tuple(r)) for (t, w), r in shared.items()),
        *(Line(team=r.key.team, want=r.want, requests=(r,)) for r in alone),
    )
