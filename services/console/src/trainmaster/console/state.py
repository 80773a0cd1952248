"""What the console remembers: jobs, nodes, teams, where events lie, the newest.

All is saved but `recent`: followers are told from it, so that two hundred of them do
not read the log two hundred times.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice

from trainmaster.console import view
from trainmaster.console.settings import RECENT_EVENTS
from trainmaster.console.shelf import Shelf
from trainmaster.console.view import Trail
from trainmaster.core import subjects
from trainmaster.core.decision import Changed
from trainmaster.core.envelope import Entry
from trainmaster.core.events import Transition
from trainmaster.core.ids import (
    JobId,
    JobKey,
    MemberKey,
    NodeKey,
    PoolKey,
    TeamKey,
    TokenKey,
)
from trainmaster.core.job import Void
from trainmaster.core.jobs import followed
from trainmaster.core.nodes import Node, node_after
from trainmaster.core.notes import CheckpointVerified
from trainmaster.core.record import Job
from trainmaster.core.teams import Pool, Team, pool_after, team_after
from trainmaster.core.tokens import Token, fold_token


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """An event as followers see it; `seq` is its number in its job's life, or 0."""

    seq: int
    entry: Entry


class Recent:
    """The newest events in memory, in the order they were read."""

    def __init__(self, *, most: int = RECENT_EVENTS) -> None:
        self.count = 0
        self._newest: deque[Told] = deque(maxlen=most)
        self._by_place: dict[int, Entry] = {}

    def add(self, told: Told) -> None:
        """Take one in; the oldest one leaves when there are too many."""
        if len(self._newest) == self._newest.maxlen:
            self._by_place.pop(place_of(self._newest[0].entry), None)
        self._newest.append(told)
        self.count += 1
        if told.seq:
            self._by_place[place_of(told.entry)] = told.entry

    def behind(self, count: int) -> list[Told]:
        """List what came after the first `count`, as far as it is still here."""
        wanted = min(max(self.count - count, 0), len(self._newest))
        return list(islice(self._newest, len(self._newest) - wanted, None))

    def at(self, place: int) -> Entry | None:
        """Find the event at one place of a trail; None when it has left."""
        return self._by_place.get(place)


@dataclass(slots=True)
class State:
    """Everything that can be asked of the log."""

    jobs: Shelf = field(default_factory=Shelf)
    trails: dict[JobKey, Trail] = field(default_factory=dict[JobKey, Trail])
    nodes: dict[NodeKey, Node] = field(default_factory=dict[NodeKey, Node])
    teams: dict[TeamKey, Team] = field(default_factory=dict[TeamKey, Team])
    pools: dict[PoolKey, Pool] = field(default_factory=dict[PoolKey, Pool])
    tokens: dict[TokenKey, Token] = field(default_factory=dict[TokenKey, Token])
    recent: Recent = field(default_factory=Recent)

    def trail(self, job: JobId) -> Trail:
        """Find where a job's events lie."""
        return self.trails.get(trail_key(job), Trail())


def trail_key(job: JobId) -> JobKey:
    """Name a trail by the job alone: an agent's report does not tell the team."""
    return JobKey("", job)


def place_of(entry: Entry) -> int:
    """Write down where an event is stored."""
    return -entry.seq if entry.stream == subjects.MEMBERS else entry.seq


def fold(state: State, entry: Entry) -> Iterable[Changed]:
    """Take one event in and name the rows it touched."""
    match entry.key:
        case JobKey() as key if isinstance(entry.event, Transition):
            return _moved(state, key, entry, entry.event)
        case JobKey() as key:
            return _noted(state, key, entry)
        case MemberKey() as key:
            return _followed(state, key.job, entry)
        case TeamKey() | PoolKey() | TokenKey():
            state.recent.add(Told(seq=0, entry=entry))
            return _administered(state, entry)
        case NodeKey() as key:
            state.recent.add(Told(seq=0, entry=entry))
            before = state.nodes.get(key, Node())
            state.nodes[key] = node_after(before, entry.event, entry.time)
            return (("node", key),)
        case _:
            state.recent.add(Told(seq=0, entry=entry))
            return ()


def _administered(state: State, entry: Entry) -> Iterable[Changed]:
    match entry.key:
        case TeamKey() as key if (
            team := team_after(state.teams.get(key), entry.event, entry.time)
        ) is not None:
            state.teams[key] = team
            return (("team", key),)
        case PoolKey() as key if (
            pool := pool_after(state.pools.get(key), entry.event, entry.time)
        ) is not None:
            state.pools[key] = pool
            return (("pool", key),)
        case TokenKey() as key if fold_token(state.tokens, entry):
            return (("token", key),)
        case _:
            return ()


def _moved(
    state: State, key: JobKey, entry: Entry, event: Transition
) -> Iterable[Changed]:
    before = state.jobs.get(key)
    known = Job(key=key) if before is None else before.job
    outcome = followed(known, event, entry.time)
    if isinstance(outcome, Void):
        return ()
    state.jobs[key] = view.moved(before, outcome, event)
    return (("job", key), *_followed(state, key.job, entry), *_dropped(state))


def _noted(state: State, key: JobKey, entry: Entry) -> Iterable[Changed]:
    changed = _followed(state, key.job, entry)
    known = state.jobs.get(key)
    if known is None or not isinstance(entry.event, CheckpointVerified):
        return changed
    state.jobs[key] = view.saved(known, entry.event)
    return (("job", key), *changed)


def _followed(state: State, job: JobId, entry: Entry) -> tuple[Changed, ...]:
    key = trail_key(job)
    places = state.trails.setdefault(key, Trail()).places
    places.append(place_of(entry))
    state.recent.add(Told(seq=len(places), entry=entry))
    return (("trail", key),)


def _dropped(state: State) -> Iterable[Changed]:
    for key in state.jobs.drop_oldest():
        state.trails.pop(trail_key(key.job), None)
        yield "job", key
        yield "trail", trail_key(key.job)
