"""Every state meets every event; the outcome is what DESIGN section 2 says.

The table below is written down by hand, from the design and not from the code.
"""

from collections.abc import Iterator
from functools import cache
from itertools import product

import pytest

from trainmaster.core import events
from trainmaster.core.changes import CHANGES
from trainmaster.core.events import REGISTRY, Transition
from trainmaster.core.job import TRANSITIONS, Void, evolve
from trainmaster.core.record import FINAL, LIVE, Job, JobState
from trainmaster.core.spec import CheckpointSpec, JobSpec
from trainmaster.testkit.builders import (
    LIVES,
    START,
    WORDS,
    a_history,
    a_spec,
    said,
    told,
)

pytestmark = pytest.mark.unit

LIVE_STATES = "placed starting running stopping"
OPEN_STATES = f"queued held {LIVE_STATES} settling"
FINAL_STATES = "succeeded failed cancelled"
TABLE = f"""
submitted           | new                          | queued held
attempt_placed      | queued                       | placed
start_ordered       | placed                       | starting
attempt_started     | starting                     | running
attempt_started     | stopping                     | stopping
attempt_ended       | {LIVE_STATES}                | settling
attempt_lost        | {LIVE_STATES}                | settling
preempt_requested   | placed starting running      | stopping
stop_requested      | placed starting running      | stopping
cancel_requested    | queued held                  | settling
cancel_requested    | placed starting running      | stopping
cancel_requested    | stopping                     | stopping
cancel_requested    | settling                     | settling
held                | queued                       | held
held                | settling                     | settling
released            | held                         | queued
reprioritized       | {OPEN_STATES}                | stays
checkpoint_chosen   | settling queued              | stays
attempt_reclaimed   | {OPEN_STATES} {FINAL_STATES} | stays
requeued            | settling                     | queued held
succeeded           | settling                     | succeeded
failed              | settling                     | failed
cancelled           | settling                     | cancelled
archived            | {FINAL_STATES}               | stays
"""
PUBLISHERS = {
    "submission": "submitted cancel_requested held released reprioritized",
    "scheduler": "attempt_placed preempt_requested",
    "launcher": "start_ordered attempt_started attempt_ended",
    "checkpoint-manager": "checkpoint_chosen",
    "reaper": "stop_requested attempt_lost attempt_reclaimed requeued succeeded failed "
    "cancelled archived",
}

Targets = dict[tuple[JobState, str], set[JobState]]


def read_table() -> Targets:
    targets: Targets = {}
    for row in TABLE.strip().splitlines():
        kind, sources, goals = (cell.strip() for cell in row.split("|"))
        for source in map(JobState, sources.split()):
            named = source if goals == "stays" else goals
            targets[source, kind] = set(map(JobState, named.split()))
    return targets


EXPECTED = read_table()
KINDS = {kind: cls for (family, kind), cls in REGISTRY.items() if family == "job"}

# What a word of the builders is called on the log, and the ways to say it.
WORDS_OF = {kind: [kind] for kind in KINDS} | {
    "attempt_placed": ["placed"],
    "start_ordered": ["ordered"],
    "attempt_started": ["started"],
    "attempt_ended": ["ended", "completed"],
    "attempt_lost": ["lost"],
    "preempt_requested": ["preempt"],
    "stop_requested": ["stop"],
    "cancel_requested": ["cancel"],
    "checkpoint_chosen": ["chosen"],
    "attempt_reclaimed": ["reclaimed", "reclaimed@1"],
    "requeued": ["requeued", "fenced"],
}
# Ways to have lived before: not at all, with nodes that still owe a proof, without.
PASTS = [
    "submitted",
    "submitted placed ordered started ended fenced",
    "submitted placed ordered started ended reclaimed requeued",
]
MORE_WAYS = {
    JobState.HELD: ["submitted placed ended held reclaimed requeued"],
    JobState.STOPPING: ["submitted placed cancel", "submitted placed ordered preempt"],
    JobState.SETTLING: [
        "submitted cancel",
        "submitted placed lost",
        "submitted placed ordered completed reclaimed",
        "submitted placed ended held",
    ],
    JobState.FAILED: ["submitted placed lost failed"],
    JobState.CANCELLED: ["submitted placed cancel ended reclaimed cancelled archived"],
}


def lead(words: str, spec: JobSpec) -> Job:
    return told(a_history(words, spec=spec))


@cache
def jobs_in(state: JobState) -> list[tuple[str, Job]]:
    """Jobs in one state, with different pasts and different specs."""
    short = LIVES[state].removeprefix("submitted").strip()
    ways = [f"{past} {short}" for past in PASTS] if state is not JobState.NEW else [""]
    specs = [
        a_spec(),
        a_spec(hold=True),
        a_spec(checkpoint=CheckpointSpec(resume_from="elsewhere")),
    ]
    # With `hold: true` a job begins as held; for the others `released` is void.
    found = [
        (way, lead(way.replace("submitted", "submitted released"), spec))
        for way, spec in product([*ways, *MORE_WAYS.get(state, [])], specs)
    ]
    assert {job.state for _, job in found} == {state}
    return found


def outcomes(state: JobState, kind: str) -> Iterator[tuple[str, Job | Void]]:
    spec = a_spec()
    for (way, job), word in product(jobs_in(state), WORDS_OF[kind]):
        for each in (spec, a_spec(hold=True)):
            event = said(job, word, spec=each)
            yield f"{way}, then {word}", evolve(job, event, START)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("state", JobState)
def test_every_state_meets_every_event_as_the_design_says(state: JobState, kind: str):
    goals = EXPECTED.get((state, kind), set())
    seen = {
        (outcome.state if isinstance(outcome, Job) else None): way
        for way, outcome in outcomes(state, kind)
    }
    followed = {goal: way for goal, way in seen.items() if goal is not None}
    assert set(followed) == goals, f"{state} and {kind}: {followed}"


@pytest.mark.parametrize("state", JobState)
def test_a_void_event_has_a_reason_and_the_table_allows_all_others(state: JobState):
    numbered = [f"{word}@{attempt}" for word in WORDS for attempt in range(4)]
    for (way, job), word in product(jobs_in(state), [*WORDS, *numbered]):
        event = said(job, word, spec=a_spec())
        outcome = evolve(job, event, START)
        if isinstance(outcome, Void):
            assert outcome.reason, (way, word)
        else:
            assert outcome.state in EXPECTED[state, event.kind], (way, word)


def test_the_table_of_the_code_is_the_table_of_the_design():
    rows = {
        (source, kind.kind): target
        for kind, moves in TRANSITIONS.items()
        for source, target in moves.items()
    }
    assert set(rows) == set(EXPECTED)
    assert all(target in EXPECTED[row] for row, target in rows.items())


def concrete(kind: type[Transition]) -> Iterator[type[Transition]]:
    for child in kind.__subclasses__():
        if child.publisher:
            yield child
        yield from concrete(child)


def test_the_table_covers_every_transition():
    every = set(concrete(Transition))
    assert every == set(TRANSITIONS) == set(CHANGES) == set(KINDS.values())


def test_every_state_can_be_reached_and_left():
    sources = {state for moves in TRANSITIONS.values() for state in moves}
    targets = {state for moves in TRANSITIONS.values() for state in moves.values()}
    assert sources == set(JobState)
    assert targets == set(JobState) - {JobState.NEW}


def test_states_are_live_or_final_as_the_design_groups_them():
    assert set(map(JobState, LIVE_STATES.split())) == LIVE
    assert set(map(JobState, FINAL_STATES.split())) == FINAL


def test_every_transition_has_the_publisher_of_the_design():
    ours = {kind: cls.publisher for kind, cls in KINDS.items()}
    assert ours == {
        kind: who for who, kinds in PUBLISHERS.items() for kind in kinds.split()
    }


def test_every_transition_says_what_happened():
    for kind in KINDS.values():
        assert kind.__doc__, kind
        assert kind.__module__ == events.__name__
