"""Decides what becomes of a request: an event on the log, or the reason why not.

A request is a fact until it is answered. Asked twice, a request finds that it is so
already, so repeating one after a time-out is safe.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from trainmaster.core import subjects
from trainmaster.core.decision import Answer, Changed, Decision, Group, Write
from trainmaster.core.envelope import Entry
from trainmaster.core.errors import Fault
from trainmaster.core.events import (
    CancelRequested,
    Event,
    Held,
    Released,
    Reprioritized,
    Submitted,
    Transition,
)
from trainmaster.core.facts import (
    PoolCreated,
    TeamCreated,
)
from trainmaster.core.ids import JobKey, Key, NodeKey, PoolKey, TeamKey, TokenKey
from trainmaster.core.moment import Moment
from trainmaster.core.nodes import Node, node_after
from trainmaster.core.record import FINAL, Job, JobState
from trainmaster.core.spec import spec_digest
from trainmaster.core.teams import Pool, Team, pool_after, team_after
from trainmaster.core.tokens import fold_token
from trainmaster.jobfile.fits import Shape, never_fits
from trainmaster.jobfile.nearest import did_you_mean, nearest
from trainmaster.submission.nodes import judged_node
from trainmaster.submission.requests import (
    ROOM_FACT,
    Already,
    Cancel,
    Full,
    Hold,
    Impossible,
    Missing,
    NodeRequest,
    Release,
    Reply,
    Reprioritize,
    Request,
    Room,
    Stored,
    Submit,
    Unfit,
)
from trainmaster.submission.settings import (
    COMMANDS_MAX,
    DEFAULT_POOL,
    DEFAULT_TEAM,
    FOUNDER,
    PORT_FIRST,
    PORT_LAST,
)
from trainmaster.submission.state import State
from trainmaster.submission.teams import OfficeRequest, judged

_ROOM: Final = Room()
_REQUESTS: Final = (Request, NodeRequest, OfficeRequest)


class Submission:
    """Turns requests into events, and founds the first team and the first pool."""

    name: str = "submission"
    hears: tuple[str, ...] = tuple(
        map(subjects.all_of, ("job", "team", "pool", "token", "node"))
    )

    def fold(self, state: State, entry: Entry) -> Iterable[Changed]:
        """Take one event in and name the rows it touched."""
        match entry.key, entry.event:
            case JobKey(), _ if isinstance(state.jobs.fold(entry), Job):
                return (("job", entry.key),)
            case TeamKey() as key, event:
                team = team_after(state.teams.get(key), event, entry.time)
                return _kept("team", state.teams, key, team)
            case PoolKey() as key, event:
                pool = pool_after(state.pools.get(key), event, entry.time)
                return _kept("pool", state.pools, key, pool)
            case TokenKey() as key, _ if fold_token(state.tokens, entry):
                return (("token", key),)
            case NodeKey() as node, event:
                before = state.nodes.get(node, Node())
                state.nodes[node] = node_after(before, event, entry.time)
                return (("node", node),)
            case _:
                return ()

    def decide(self, state: State, facts: Mapping[str, Any], now: Moment) -> Decision:
        """Answer what can be answered; the rest is answered once it is stored."""
        founding = tuple(_founding(state))
        if founding:
            return Decision(groups=founding)  # requests wait until it is read back
        groups: list[Group] = []
        answers: list[Answer] = []
        touched: set[Key] = set()
        room: Room = facts.get(ROOM_FACT, Room())
        for name, request in facts.items():
            if len(groups) >= COMMANDS_MAX:
                break
            if not isinstance(request, _REQUESTS) or request.moves in touched:
                continue  # a job moves once in a decision; the next one goes on
            outcome = (
                judged(state, request, now.at)
                if isinstance(request, OfficeRequest)
                else judge(state, request, room)
            )
            if isinstance(outcome, Event):
                touched.add(request.moves)
                answers.append(Answer(fact=name, value=_stored, group=len(groups)))
                groups.append((Write(key=request.key, event=outcome),))
            else:
                answers.append(Answer(fact=name, value=outcome))
        return Decision(groups=tuple(groups), answers=tuple(answers))


def _kept(
    name: str, kept: dict[Any, Any], key: Key, value: Team | Pool | None
) -> tuple[Changed, ...]:
    if value is None:
        return ()
    kept[key] = value
    return ((name, key),)


def _stored(seq: int) -> Stored:
    return Stored(seq=seq)


def _founding(state: State) -> Iterator[Group]:
    team, pool = TeamKey(DEFAULT_TEAM), PoolKey(DEFAULT_POOL)
    if team not in state.teams:
        yield (Write(key=team, event=TeamCreated(by=FOUNDER)),)
    if pool not in state.pools:
        created = PoolCreated(by=FOUNDER, port_first=PORT_FIRST, port_last=PORT_LAST)
        yield (Write(key=pool, event=created),)


def judge(
    state: State, request: Request | NodeRequest, room: Room = _ROOM
) -> Event | Reply:
    """Say which event a request becomes, or why it becomes none."""
    if isinstance(request, NodeRequest):
        return judged_node(state.nodes.get(request.key), request)
    if isinstance(request, Submit):
        return _submit(state, request, room)
    job = state.jobs.get(request.key)
    if job is None:
        return Missing()
    if job.state in FINAL:
        return _over(job, request)
    return _JUDGES[type(request)](job, request)


def _submit(state: State, request: Submit, room: Room) -> Transition | Reply:
    if request.key in state.jobs:
        return Already(message="it was submitted before")
    faults = tuple(unknown_places(state, request.key.team, request.spec.pool))
    faults = faults or never_fits(request.spec, _shapes(state, request.spec.pool))
    if faults:
        return Unfit(faults=faults)
    if request.dry:
        return Already(message="it would be taken")
    if room.full:
        return Full(room=room)
    return Submitted(
        spec=request.spec,
        spec_digest=spec_digest(request.spec),
        by=request.by,
        origin=request.origin,
        key=request.idempotency_key,
    )


def _shapes(state: State, pool: str) -> tuple[Shape, ...]:
    """List what each node of a pool offers, also those that are away for now.

    A node without cores has not said what it offers.
    """
    return tuple(
        Shape(
            accelerators=node.capacity.accelerators,
            cpus=node.capacity.cpus,
            memory_bytes=node.capacity.memory_bytes,
        )
        for key, node in state.nodes.items()
        if key.pool == pool and node.capacity.cpus
    )


def unknown_places(state: State, team: str, pool: str) -> Iterator[Fault]:
    """Name the team and the pool, if there are no such."""
    asked = (
        ("team", team, [key.team for key in state.teams]),
        ("pool", pool, [key.pool for key in state.pools]),
    )
    for name, value, right in asked:
        if value not in right:
            known = ", ".join(f"`{each}`" for each in sorted(right)) or "none"
            guess = did_you_mean(nearest(value, right))
            message = f"no {name} is called `{value}` (known: {known}){guess}"
            yield Fault(field=name, message=message)


def _over(job: Job, request: Request) -> Reply:
    if isinstance(request, Cancel) and job.state is JobState.CANCELLED:
        return Already(message="it is cancelled")
    return Impossible(message=f"the job is over: it {_ENDED[job.state]}")


_ENDED: Final = {
    JobState.SUCCEEDED: "succeeded",
    JobState.FAILED: "failed",
    JobState.CANCELLED: "was cancelled",
}


def _cancel(job: Job, request: Cancel) -> Transition | Reply:
    if job.cancel is not None:
        return Already(message=f"{job.cancel.by or 'somebody'} asked for it before")
    return CancelRequested(by=request.by, origin=request.origin, reason=request.reason)


def _hold(job: Job, request: Hold) -> Transition | Reply:
    if job.state is JobState.HELD or job.hold:
        return Already(message="it is held")
    if job.state in {JobState.QUEUED, JobState.SETTLING}:
        return Held(by=request.by, origin=request.origin, reason=request.reason)
    return Impossible(
        message=f"attempt {job.attempt} is {job.state}; only a job that waits can be "
        "held, a live one can be cancelled"
    )


def _release(job: Job, request: Release) -> Transition | Reply:
    if job.state is JobState.HELD:
        return Released(by=request.by, origin=request.origin)
    if job.hold:
        return Impossible(
            message=f"it is held only once attempt {job.attempt} has settled; "
            "release it then"
        )
    return Already(message="it is not held")


def _reprioritize(job: Job, request: Reprioritize) -> Transition | Reply:
    if job.priority == request.priority:
        return Already(message=f"its priority is {job.priority}")
    return Reprioritized(
        by=request.by, origin=request.origin, priority=request.priority
    )


_JUDGES: Final[Mapping[type[Request], Callable[[Job, Any], Transition | Reply]]] = {
    Cancel: _cancel,
    Hold: _hold,
    Release: _release,
    Reprioritize: _reprioritize,
}
