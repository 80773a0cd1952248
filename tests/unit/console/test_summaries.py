"""What the console says of every event, and what it keeps to itself."""

import pytest

from trainmaster.console import answers
from trainmaster.console.state import Told
from trainmaster.console.summaries import SENTENCES, summary
from trainmaster.core.access import ReadRefused, TokenIssued
from trainmaster.core.events import (
    REGISTRY,
    Archived,
    AttemptEnded,
    Event,
    Held,
    Requeued,
)
from trainmaster.core.facts import CheckFailure, MemberPrepared, RankExited
from trainmaster.core.ids import (
    Key,
    MemberKey,
    NodeKey,
    PlanKey,
    PoolKey,
    TeamKey,
    TokenKey,
)
from trainmaster.core.notes import CheckpointVerified
from trainmaster.core.values import Cause, RankExit
from trainmaster.testkit.builders import KEY, a_placed, a_spec, a_submitted, an_entry

pytestmark = pytest.mark.unit

MEMBER = MemberKey("local", "n1", KEY.job, 1)
KEYS: dict[str, Key] = {
    "job": KEY,
    "note": KEY,
    "plan": PlanKey("local"),
    "team": TeamKey("default"),
    "pool": PoolKey("local"),
    "token": TokenKey("0123456789abcdef"),
    "audit": TeamKey("default"),
    "node": NodeKey("local", "n1"),
    "member": MEMBER,
}


@pytest.mark.parametrize("event", REGISTRY.values(), ids=lambda e: e.__name__)
def test_every_event_has_a_sentence_even_when_it_says_nothing(event: type[Event]):
    said = summary(event(), KEYS[event.family])
    assert said
    assert "\n" not in said


def test_the_table_of_sentences_holds_nothing_else():
    assert set(SENTENCES) == set(REGISTRY.values())


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (a_placed(), "attempt 1 placed on n1 (1 accelerator), n2 (1 accelerator)"),
        (
            AttemptEnded(attempt=1, first=RankExit(rank=3, node="n2", signal=9)),
            "attempt 1 ended: rank 3 on n2 was killed by signal 9",
        ),
        (
            CheckpointVerified(step=100, files=4, bytes=2_100_000),
            "checkpoint of step 100 verified (4 files, 2.1 MB)",
        ),
        (
            RankExited(exit=RankExit(rank=0, node="n1", signal=15, by_us=True)),
            "rank 0 on n1 was killed by us by signal 15",
        ),
        (
            MemberPrepared(
                failure=CheckFailure(check="directory", field="output", seen="/o: full")
            ),
            "n1 could not prepare: directory output: found /o: full",
        ),
        (Archived(attempt=1, entries=9), "archived"),
        (a_submitted(), "train submitted by ada: 2 nodes with 1 accelerator each"),
        (Held(by="token:ci", origin="10.0.0.7"), "held by token:ci from 10.0.0.7"),
        (Held(by="admin", origin="127.0.0.1"), "held by admin"),
        (
            TokenIssued(name="ci", team="*", role="viewer", by="admin"),
            "token ci given out by admin: viewer on every team",
        ),
        (
            ReadRefused(by="token:ci", action="job.view", reason="no", suppressed=3),
            "job.view refused to token:ci: no (3 more like it)",
        ),
    ],
)
def test_a_sentence_names_what_matters(event: Event, said: str):
    assert summary(event, KEYS[event.family]) == said


@pytest.mark.parametrize(
    "name", ["HF_TOKEN", "WANDB_API_KEY", "PASSWORD", "aws_secret_access", "GIT_AUTH"]
)
def test_a_secret_sounding_variable_is_redacted(name: str):
    spec = a_spec(env={name: "hush", "OMP_NUM_THREADS": "1"})
    assert answers.redacted(spec).env == {name: "[redacted]", "OMP_NUM_THREADS": "1"}


def test_events_say_what_they_are_and_who_said_it():
    lines = answers.event_lines(
        [
            Told(seq=1, entry=an_entry(a_submitted())),
            Told(seq=2, entry=an_entry(Requeued(attempt=1, cause=Cause.NODE_LOST))),
            Told(seq=3, entry=an_entry(RankExited(), key=MEMBER)),
        ]
    )
    kinds = [(line["type"], line["attempt"], line["publisher"]) for line in lines]
    assert kinds == [
        ("submitted", 0, "submission"),
        ("requeued", 1, "reaper"),
        ("rank_exited", 1, "agent"),
    ]
    assert lines[1]["event"] == {"attempt": 1, "cause": "node_lost"}
