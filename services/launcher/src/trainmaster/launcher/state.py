"""What the launcher remembers: jobs, and what the agents reported of their members.

Pure. JOBS and MEMBERS are two streams, so their folds commute: a report is kept whether
or not its job is known yet, and reports of older attempts are not kept at all.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from typing_extensions import override

from trainmaster.core.decision import Changed
from trainmaster.core.envelope import Entry
from trainmaster.core.events import AttemptPlaced, Event
from trainmaster.core.facts import (
    MemberClosed,
    MemberPrepared,
    MemberStarted,
    MemberStopped,
    RankExited,
)
from trainmaster.core.ids import JobId, MemberKey
from trainmaster.core.jobs import Jobs
from trainmaster.core.record import NEVER, Job
from trainmaster.core.values import RankExit
from trainmaster.launcher.settings import ORPHAN_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """All that an agent reported of one attempt on its node; exits by rank."""

    prepared: MemberPrepared | None = None
    started: MemberStarted | None = None
    stopped: MemberStopped | None = None
    closed: MemberClosed | None = None
    exits: Mapping[int, RankExit] = field(default_factory=dict[int, RankExit])
    reported_at: datetime = NEVER

    @property
    def is_news(self) -> bool:
        """Whether this could end a running attempt."""
        failed = self.started is not None and self.started.failure is not None
        return failed or bool(self.exits or self.closed)


NO_REPORT = Member()


class Members(dict[MemberKey, Member]):
    """Reports by member, findable by job; not changed but by `[]=` and `drop`."""

    def __init__(self) -> None:
        super().__init__()
        self._by_job: dict[JobId, dict[MemberKey, None]] = {}
        self._with_news: set[JobId] = set()

    @override
    def __setitem__(self, key: MemberKey, value: Member) -> None:
        super().__setitem__(key, value)
        self._by_job.setdefault(key.job, {})[key] = None
        if value.is_news:
            self._with_news.add(key.job)

    def drop(self, key: MemberKey) -> None:
        """Forget one member."""
        del self[key]
        of_job = self._by_job[key.job]
        del of_job[key]
        if not of_job:
            del self._by_job[key.job]
            self._with_news.discard(key.job)

    def of(self, job: JobId) -> tuple[MemberKey, ...]:
        """Name the members of a job, of all attempts."""
        return tuple(self._by_job.get(job, ()))

    def has_news(self, job: JobId) -> bool:
        """Whether a running job may have to end; most running jobs have no news."""
        return job in self._with_news

    def jobs(self) -> tuple[JobId, ...]:
        """Name the jobs somebody has reported about."""
        return tuple(self._by_job)


@dataclass(slots=True)
class State:
    """Everything the launcher decides on."""

    jobs: Jobs = field(default_factory=Jobs)
    members: Members = field(default_factory=Members)
    pruned_at: datetime = NEVER


def fold(state: State, entry: Entry) -> Iterable[Changed]:
    """Take one event in and name the rows it touched; never raises."""
    if isinstance(entry.key, MemberKey):
        return _report(state, entry.key, entry)
    return _move(state, entry)


def _report(state: State, key: MemberKey, entry: Entry) -> Iterable[Changed]:
    job = state.jobs.by_id(key.job)
    if job is not None and key.attempt < job.attempt:
        return ()
    before = state.members.get(key, NO_REPORT)
    after = replace(
        with_report(before, entry.event),
        reported_at=max(before.reported_at, entry.time),
    )
    state.members[key] = after
    return (("member", key),)


def with_report(member: Member, event: Event) -> Member:
    """Add one report; the same one again changes nothing."""
    match event:
        case MemberPrepared():
            return replace(member, prepared=event)
        case MemberStarted():
            return replace(member, started=event)
        case MemberStopped():
            return replace(member, stopped=event)
        case MemberClosed():
            return replace(member, closed=event)
        case RankExited(exit=exit_):
            return _with_exit(member, exit_)
        case _:
            return member


def _with_exit(member: Member, exit_: RankExit) -> Member:
    known = member.exits.get(exit_.rank)
    if known is not None and exit_.unknown:
        return member  # whoever looked later knows no better
    return replace(member, exits={**member.exits, exit_.rank: exit_})


def _move(state: State, entry: Entry) -> Iterable[Changed]:
    outcome = state.jobs.fold(entry)
    if not isinstance(outcome, Job):
        return ()
    moved: Changed = ("job", outcome.key)
    of_job = state.members.of(outcome.key.job)
    if outcome.archived:
        return (moved, *_forget(state, of_job), *_prune(state, entry.time))
    if isinstance(entry.event, AttemptPlaced):
        older = [key for key in of_job if key.attempt < outcome.attempt]
        return (moved, *_forget(state, older))
    return (moved,)


def _prune(state: State, now: datetime) -> list[Changed]:
    """Forget reports about jobs that were archived before the report was read."""
    patience = timedelta(seconds=ORPHAN_SECONDS)
    if now - state.pruned_at < patience:
        return []
    state.pruned_at = now
    unknown = (job for job in state.members.jobs() if state.jobs.by_id(job) is None)
    reports = [key for job in unknown for key in state.members.of(job)]
    old = (k for k in reports if state.members[k].reported_at < now - patience)
    return _forget(state, old)


def _forget(state: State, keys: Iterable[MemberKey]) -> list[Changed]:
    dropped = list(keys)
    for key in dropped:
        state.members.drop(key)
    return [("member", key) for key in dropped]
