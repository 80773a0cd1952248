"""Who waits for whom: every combination, and what is remembered for how long."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.core.endings import KEPT_MAX, Endings, Fate, outlook, parents_of
from trainmaster.core.ids import JobId, JobKey
from trainmaster.core.record import FINAL, Job, JobState
from trainmaster.core.spec import AfterSpec, JobSpec

STATES = st.sampled_from(sorted(set(JobState) - {JobState.NEW}))


def over(name: str, *, after: AfterSpec | None = None) -> Job:
    spec = JobSpec(after=after or AfterSpec())
    key = JobKey("default", JobId(name))
    return Job(key=key, spec=spec, state=JobState.SUCCEEDED, archived=True)


def live(name: str, *parents: str) -> Job:
    job = over(name, after=AfterSpec(ended=parents))
    return replace(job, state=JobState.QUEUED, archived=False)


@pytest.mark.parametrize(
    ("after", "state", "fate"),
    [
        (AfterSpec(succeeded=("a",)), JobState.SUCCEEDED, Fate.GO),
        (AfterSpec(succeeded=("a",)), JobState.FAILED, Fate.NEVER),
        (AfterSpec(succeeded=("a",)), JobState.CANCELLED, Fate.NEVER),
        (AfterSpec(succeeded=("a",)), JobState.SETTLING, Fate.WAIT),
        (AfterSpec(failed=("a",)), JobState.FAILED, Fate.GO),
        (AfterSpec(failed=("a",)), JobState.CANCELLED, Fate.GO),
        (AfterSpec(failed=("a",)), JobState.SUCCEEDED, Fate.NEVER),
        (AfterSpec(ended=("a",)), JobState.FAILED, Fate.GO),
        (AfterSpec(ended=("a",)), JobState.HELD, Fate.WAIT),
        (AfterSpec(), JobState.QUEUED, Fate.GO),
    ],
)
def test_a_fate_follows_from_how_the_parent_ended(
    after: AfterSpec, state: JobState, fate: Fate
):
    assert outlook(after, lambda _: state).fate is fate


@given(st.lists(STATES, max_size=5), st.lists(STATES, max_size=5))
def test_never_wins_over_waiting_and_waiting_over_going(
    succeeded: list[JobState], ended: list[JobState]
):
    names = {f"s{i}": s for i, s in enumerate(succeeded)}
    names |= {f"e{i}": s for i, s in enumerate(ended)}
    after = AfterSpec(
        succeeded=tuple(n for n in names if n[0] == "s"),
        ended=tuple(n for n in names if n[0] == "e"),
    )
    found = outlook(after, lambda job: names[job])
    lost = any(s in FINAL and s is not JobState.SUCCEEDED for s in succeeded)
    open_ = any(s not in FINAL for s in (*succeeded, *ended))
    assert found.fate is (Fate.NEVER if lost else Fate.WAIT if open_ else Fate.GO)
    assert bool(found.jobs) is (found.fate is not Fate.GO)


def test_an_ending_is_remembered_however_many_others_end_while_somebody_waits():
    endings = Endings()
    parent, child = over("parent"), live("child", "parent", "other")
    list(endings.follow(None, child))
    list(endings.follow(parent, parent))
    for number in range(5 * KEPT_MAX):
        list(endings.follow(None, over(f"j{number}")))
    assert endings.by_job[parent.key] is JobState.SUCCEEDED
    assert len(endings.by_job) <= 2 * KEPT_MAX + 1
    done = replace(child, state=JobState.FAILED, archived=True)
    named = set(endings.follow(child, done))
    for number in range(5 * KEPT_MAX):
        named |= set(endings.follow(None, over(f"k{number}")))
    assert parent.key not in endings.by_job
    assert {parent.key, child.key} <= named


def test_after_loading_it_is_counted_who_waits():
    endings = Endings(by_job={over("parent").key: JobState.FAILED})
    endings.count([live("child", "parent")])
    for number in range(5 * KEPT_MAX):
        list(endings.follow(None, over(f"j{number}")))
    assert over("parent").key in endings.by_job


def test_parents_are_listed_once_per_mention():
    after = AfterSpec(succeeded=("a",), ended=("b",), failed=("c",))
    assert parents_of(after) == ("a", "b", "c")
