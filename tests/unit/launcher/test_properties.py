"""What holds for the launcher in every life, with reports in every order."""

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.launcher.scenes import (
    FAILURE,
    NOW,
    PREPARED,
    STARTED,
    STOPPED,
    closed,
    exited,
)

from trainmaster.core import subjects
from trainmaster.core.envelope import Entry
from trainmaster.core.events import Archived, AttemptEnded, StartOrdered, Transition
from trainmaster.core.facts import MemberFact, MemberPrepared, MemberStarted
from trainmaster.core.ids import JobKey, Key, MemberKey
from trainmaster.core.record import Job
from trainmaster.launcher.policy import Launcher
from trainmaster.launcher.state import State
from trainmaster.launcher.store import tables
from trainmaster.testkit.builders import an_entry
from trainmaster.testkit.strategies import logs

pytestmark = pytest.mark.unit

some = settings(max_examples=40, deadline=None)

REPORTS: Sequence[MemberFact] = (
    PREPARED,
    PREPARED.model_copy(update={"versions": {"python": "2"}}),
    MemberPrepared(failure=FAILURE),
    STARTED,
    MemberStarted(failure=FAILURE),
    STOPPED,
    closed(),
    *(exited(rank, "n1-1") for rank in range(3)),
    *(exited(rank, "n1-1", code=1) for rank in range(3)),
    exited(0, "n1-1", signal=9),
    exited(1, "n1-1", unknown=True),
    exited(0, "n1-1", signal=15, by_us=True),
)


@st.composite
def histories(draw: st.DrawFn) -> list[Entry]:
    """A log of jobs with reports of their members strewn in, sensible or not."""
    entries = draw(logs(wild=True))
    said: list[Entry] = []
    for entry in entries:
        said.append(entry)
        assert isinstance(entry.key, JobKey)
        for _ in range(draw(st.integers(0, 4))):
            key = MemberKey(
                "local",
                f"n{draw(st.integers(1, 3))}-{draw(st.integers(1, 3))}",
                entry.key.job,
                draw(st.integers(1, 2)),
            )
            event = draw(st.sampled_from(REPORTS))
            said.append(an_entry(event, key=key, seq=entry.seq))
    return said


def folded(entries: Sequence[Entry]) -> State:
    launcher, state = Launcher(), State()
    for entry in entries:
        launcher.fold(state, entry)
    return state


def decided(state: State) -> list[tuple[Job, Transition]]:
    decision = Launcher().decide(state, {}, NOW)
    return [
        (state.jobs[write.key], write.event)  # pyright: ignore[reportArgumentType]
        for group in decision.groups
        for write in group
        if isinstance(write.event, Transition)
    ]


def named(state: State) -> dict[Key, Transition]:
    return {job.key: event for job, event in decided(state)}


@some
@given(histories())
def test_nothing_decided_is_void_and_it_comes_to_rest(entries: list[Entry]):
    launcher, state = Launcher(), folded(entries)
    for _ in range(4):
        events = decided(state)
        assert len({job.key for job, _ in events}) == len(events)
        for job, event in events:
            assert launcher.fold(state, an_entry(event, key=job.key, seq=10**6))
        if not events:
            return
    assert not decided(state)


@some
@given(histories())
def test_the_same_state_gives_the_same_decision(entries: list[Entry]):
    assert decided(folded(entries)) == decided(folded(entries))


@some
@given(histories())
def test_reports_may_be_read_before_or_after_the_jobs_they_are_about(
    entries: list[Entry],
):
    jobs = list(_once([e for e in entries if isinstance(e.event, Transition)]))
    members = [e for e in entries if not isinstance(e.event, Transition)]
    first, last = folded([*members, *jobs]), folded([*jobs, *members])
    live = {key.job for key in first.jobs}
    assert first.jobs == last.jobs
    assert {k: v for k, v in first.members.items() if k.job in live} == {
        k: v for k, v in last.members.items() if k.job in live
    }
    assert decided(first) == decided(last)


def _once(entries: Sequence[Entry]) -> Iterator[Entry]:
    """Leave out what comes after `archived`: an id is never used for another job."""
    gone: set[Key] = set()
    for entry in entries:
        if entry.key not in gone:
            yield entry
        if isinstance(entry.event, Archived):
            gone.add(entry.key)


@some
@given(histories())
def test_what_an_agent_says_again_changes_nothing(entries: list[Entry]):
    newest = {
        subjects.event_subject(entry.key, entry.event): entry
        for entry in entries
        if isinstance(entry.event, MemberFact)
    }
    again = [*entries, *newest.values()]
    assert decided(folded(entries)) == decided(folded(again))


@some
@given(histories())
def test_no_start_is_ordered_that_was_not_prepared_equally(entries: list[Entry]):
    state = folded(entries)
    for job, event in decided(state):
        if isinstance(event, StartOrdered):
            reports = [
                state.members[MemberKey(job.pool, node, job.key.job, job.attempt)]
                for node in job.nodes
            ]
            versions = [r.prepared.versions for r in reports if r.prepared]
            assert len(versions) == len(job.members)
            assert all(v == versions[0] for v in versions)
        if isinstance(event, AttemptEnded):
            assert event.cause


@some
@given(histories())
def test_rows_bring_the_same_state_back(entries: list[Entry]):
    state, rows = folded(entries), tables()
    changed = {("job", key) for key in state.jobs}
    changed |= {("member", key) for key in state.members}
    documents: dict[str, dict[str, str]] = {}
    for (name, key), body in rows.dump(state, changed).items():
        assert body is not None
        documents.setdefault(name, {})[key] = body
    loaded = rows.load(documents)
    assert (loaded.jobs, loaded.members) == (state.jobs, state.members)
    assert named(loaded) == named(state)
