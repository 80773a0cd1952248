"""What one plan is made from: who waits, in which order, and what nodes have free."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import IntFlag
from typing import Final, NamedTuple

from trainmaster.core.ids import JobKey, TeamKey
from trainmaster.core.record import Job, JobState
from trainmaster.core.values import Cause
from trainmaster.scheduler.labels import LEVELS, Frame, Look
from trainmaster.scheduler.teams import Pool, Team
from trainmaster.scheduler.usage import TeamUse

_INT32_MAX: Final = 2**31 - 1
_GIVEN_UP: Final = frozenset({Cause.PREEMPTED, Cause.COMPLETED, Cause.CANCELLED})
"""Whose nodes are not kept: somebody else needs them, or nobody comes back."""


class Kind(IntFlag):
    """Kinds of what a node has; a reservation keeps the kinds its owner wants."""

    NONE = 0
    DEVICES = 1
    CPUS = 2
    MEMORY = 4


class Want(NamedTuple):
    """What one attempt needs on each of its nodes. Equal wants are decided once.

    `avoid` is a preference. `owing` nodes still owe proof of an older attempt of the
    same job: they are never used, so that two attempts cannot meet on one node.
    `seconds` is how long it may run, 0 for no limit; `owner` is the job's id when nodes
    are kept for it; `enters` names the reservations it may use.
    """

    nodes: int
    accelerators: int
    cpus: int
    memory_bytes: int
    avoid: tuple[str, ...] = ()
    owing: tuple[str, ...] = ()
    seconds: float = 0.0
    types: tuple[str, ...] = ()
    topology: str = ""
    owner: str = ""
    spares: bool = False
    enters: tuple[str, ...] = ()

    @property
    def kinds(self) -> Kind:
        """Name what a member takes away from others."""
        kinds = Kind.DEVICES if self.accelerators else Kind.CPUS
        return kinds | Kind.MEMORY if self.memory_bytes else kinds

    @property
    def charge(self) -> int:
        """Count the accelerators of the whole gang."""
        return max(self.nodes, 0) * self.accelerators

    def suits(self, look: Look) -> bool:
        """Tell whether an empty node that looks so could take a member."""
        return (
            look.accelerators >= self.accelerators
            and look.cpus >= self.cpus
            and look.memory_bytes >= self.memory_bytes
            and (not self.types or look.likeness.accelerator in self.types)
        )


class Place(NamedTuple):
    """Where a job stands: higher priority first, then who came first, then by id."""

    priority_negated: int
    submitted_at: datetime
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One waiting job, as far as a plan needs it.

    `first`: it was already placed and failed, so it goes before the rest of its class.
    """

    key: JobKey
    place: Place
    attempt: int
    want: Want
    ranks_per_node: int
    not_before: datetime | None = None
    resume_from: str = ""
    user: str = ""
    first: bool = False

    @property
    def alone(self) -> bool:
        """It may wait for something of its own, so no equal ones stand behind it."""
        return bool(self.not_before or self.resume_from or self.first)

    @property
    def priority(self) -> int:
        """Higher goes first."""
        return -self.place.priority_negated


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Requests with one want that are equal but for their time, in order."""

    requests: tuple[Request, ...]

    @property
    def head(self) -> Request:
        """Who is served first."""
        return self.requests[0]


class Room(NamedTuple):
    """One node and what is free on it."""

    frame: Frame
    devices_free: tuple[int, ...] = ()
    cpus_free: int = 0
    memory_free_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Nodes kept for a job that was there and may come back; none once it did."""

    nodes: tuple[str, ...]
    accelerators: int
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All that a plan of one pool depends on.

    `jobs` are all live ones and `tenants` those on each node; `preempted` is how often
    a job was, `saved_at` when its newest whole checkpoint was seen, `claims` for whom
    running jobs were stopped.
    """

    pool: str
    now: datetime
    rooms: Mapping[str, Room] = field(default_factory=dict[str, Room])
    lines: tuple[Line, ...] = ()
    teams: Mapping[TeamKey, Team] = field(default_factory=dict[TeamKey, Team])
    use: Mapping[TeamKey, TeamUse] = field(default_factory=dict[TeamKey, TeamUse])
    user_use: Mapping[tuple[str, str], int] = field(
        default_factory=dict[tuple[str, str], int]
    )
    settings: Pool = field(default_factory=Pool)
    prices: Mapping[str, float] = field(default_factory=dict[str, float])
    jobs: Mapping[JobKey, Job] = field(default_factory=dict[JobKey, Job])
    tenants: Mapping[str, Iterable[JobKey]] = field(
        default_factory=dict[str, Iterable[JobKey]]
    )
    holds: Mapping[JobKey, Hold] = field(default_factory=dict[JobKey, Hold])
    preempted: Mapping[JobKey, int] = field(default_factory=dict[JobKey, int])
    saved_at: Mapping[JobKey, datetime] = field(default_factory=dict[JobKey, datetime])
    claims: frozenset[str] = frozenset()


def request_of(job: Job) -> Request:
    """Turn a waiting job into a request for its next attempt."""
    spec, owing = job.spec, {m.node for ms in job.unreclaimed.values() for m in ms}
    numbers = (spec.accelerators_per_node, spec.cpus_per_node, spec.ranks_per_node)
    sane = min(*numbers, spec.memory_bytes_per_node) >= 0 and spec.ranks <= _INT32_MAX
    limit = spec.time_limit_seconds
    again = came_back(job)
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
            seconds=limit + spec.stop_grace_seconds if limit > 0 else 0.0,
            types=spec.accelerator_types,
            topology=spec.topology if spec.topology.removesuffix("!") in LEVELS else "",
            owner=job.key.job if again else "",
            spares=again,
        ),
        ranks_per_node=spec.ranks_per_node,
        not_before=job.not_before,
        resume_from=_awaited(job),
        user=job.by,
        first=again,
    )


def came_back(job: Job) -> bool:
    """Tell whether a job ran and was not stopped for the sake of others."""
    return job.ended is not None and job.ended.cause not in _GIVEN_UP


def hold_of(job: Job) -> Hold | None:
    """Say which nodes are kept for a job whose attempt failed, until it is back.

    A node that is blamed is given up, one that is still charged needs no keeping, and
    all is given up once the job cannot go on or has to back off.
    """
    waits = job.state in (JobState.SETTLING, JobState.QUEUED)
    if not waits or job.cancel or job.hold or job.clean or job.not_before:
        return None
    seconds = job.spec.retry.hold_seconds
    if job.ended is None or not came_back(job) or not 0 < seconds < _INT32_MAX:
        return None
    out = {*job.avoid, job.ended.node if job.ended.lost else ""}
    out.update(m.node for members in job.unreclaimed.values() for m in members)
    return Hold(
        nodes=tuple(node for node in job.nodes if node not in out),
        accelerators=job.spec.accelerators_per_node,
        until=job.ended.at + timedelta(seconds=seconds),
    )


def _awaited(job: Job) -> str:
    """Name the restore point that a first attempt waits for, "" for none."""
    if job.attempt or job.chosen is not None:
        return ""
    return job.spec.checkpoint.resume_from


def lines_of(requests: Iterable[Request]) -> tuple[Line, ...]:
    """Stand requests in lines; the order they come in does not matter."""
    shared: dict[tuple[str, str, int, Want], list[Request]] = {}
    alone: list[Request] = []
    for request in sorted(requests, key=lambda r: r.place):
        if request.alone:
            alone.append(request)
        else:
            which = request.key.team, request.user, request.priority, request.want
            shared.setdefault(which, []).append(request)
    return (
        *(Line(requests=tuple(requests)) for requests in shared.values()),
        *(Line(requests=(request,)) for request in alone),
    )
