"""Subjects: one spelling, there and back, and nothing hostile gets through."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmaster.core import subjects
from trainmaster.core.errors import InvalidTokenError
from trainmaster.core.events import REGISTRY, Event, PlanMade, Submitted
from trainmaster.core.facts import MemberPrepared, RankExited
from trainmaster.core.ids import (
    JobId,
    JobKey,
    Key,
    MemberKey,
    NodeKey,
    PlanKey,
    PoolKey,
    TeamKey,
)
from trainmaster.core.values import RankExit
from trainmaster.testkit.strategies import addressed, key_of, keys

pytestmark = pytest.mark.unit

JOB = JobKey("default", JobId("J1"))
NODE = NodeKey("local", "n1")
MEMBER = MemberKey("local", "n1", JobId("J1"), 2)

# The last tokens of every stored subject, as DESIGN sections 2 and 3 write them.
KINDS = {
    "job": "submitted cancel_requested held released reprioritized attempt_placed "
    "preempt_requested start_ordered attempt_started attempt_ended checkpoint_chosen "
    "stop_requested attempt_lost attempt_reclaimed requeued succeeded failed cancelled "
    "archived",
    "note": "finding_raised finding_cleared checkpoint_verified checkpoint_rejected "
    "checkpoints_scanned checkpoint_retired attempt_bound stage_passed ledger_closed",
    "node": "registered drain_requested drain_withdrawn drained lost quarantined "
    "restored health_reported",
    "member": "prepared started stopped closed rank_exited",
    "team": "team_created quota_set team_paused budget_set",
    "pool": "pool_created pool_changed pool_tuned maintenance_set reservation_set "
    "priority_class_set",
    "token": "issued revoked",
    "audit": "request_refused read_refused",
}


def test_every_event_has_the_kind_of_the_design():
    ours: dict[str, set[str]] = {}
    for family, kind in REGISTRY:
        ours.setdefault(family, set()).add(kind)
    assert ours == {f: set(kinds.split()) for f, kinds in KINDS.items()} | {
        "plan": {""}
    }


@pytest.mark.parametrize(
    ("key", "event", "spelled"),
    [
        (JOB, Submitted(), "tm.job.default.J1.submitted"),
        (PlanKey("local"), PlanMade(), "tm.plan.local"),
        (MEMBER, MemberPrepared(), "tm.member.local.n1.J1.2.prepared"),
        (
            MEMBER,
            RankExited(exit=RankExit(rank=7)),
            "tm.member.local.n1.J1.2.rank_exited.7",
        ),
    ],
)
def test_subjects_are_spelled_as_in_the_design(key: Key, event: Event, spelled: str):
    assert subjects.event_subject(key, event) == spelled


@settings(max_examples=100, deadline=None)
@given(addressed())
def test_every_event_finds_its_way_back(pair: tuple[Key, Event]):
    key, event = pair
    parsed = subjects.parse(subjects.event_subject(key, event))
    if isinstance(event, RankExited) and event.exit.rank >= 10**9:
        assert parsed is None
        return
    assert parsed is not None
    assert (parsed.family, parsed.key, parsed.kind) == (event.family, key, event.kind)
    assert type(parsed.key) is type(key)
    assert REGISTRY[parsed.family, parsed.kind] is type(event)
    assert parsed.rank == (event.exit.rank if isinstance(event, RankExited) else -1)
    assert event.family in subjects.STREAM_OF_FAMILY


@settings(max_examples=100, deadline=None)
@given(addressed())
def test_the_scope_of_a_subject_is_the_scope_of_its_key(pair: tuple[Key, Event]):
    key, event = pair
    subject = subjects.event_subject(key, event)
    scope = subjects.scope(event.family, key)
    assert subjects.scope_of(subject) == scope
    if event.family in {"note", "member", "audit"}:
        assert scope == ""
    else:
        assert subject.startswith(scope.removesuffix(">"))


def test_scopes_of_different_keys_never_meet():
    keys_of_jobs = [JobKey("a", JobId("b")), JobKey("a", JobId("bc"))]
    assert [subjects.scope("job", key) for key in keys_of_jobs] == [
        "tm.job.a.b.>",
        "tm.job.a.bc.>",
    ]
    assert subjects.scope("plan", PlanKey("local")) == "tm.plan.local"
    assert subjects.scope("pool", PoolKey("local")) == "tm.pool.local.>"
    assert subjects.scope("team", TeamKey("a")) == "tm.team.a.>"
    assert subjects.scope("node", NODE) == "tm.node.local.n1.>"


@pytest.mark.parametrize(
    ("subject", "scope"),
    [
        ("tm.job.default.J1.no_such_kind", "tm.job.default.J1.>"),
        ("tm.job.default.J1.a.b.c", "tm.job.default.J1.>"),
        ("tm.job.default.J1.é", "tm.job.default.J1.>"),
        ("tm.node.local.n1.x.y", "tm.node.local.n1.>"),
        ("tm.plan.local.x", ""),
        ("tm.job.default.J1", ""),
        ("tm.note.default.J1.finding_raised", ""),
        ("xx.job.default.J1.submitted", ""),
        ("", ""),
        ("tm", ""),
    ],
)
def test_the_server_also_counts_what_nobody_can_read(subject: str, scope: str):
    assert subjects.scope_of(subject) == scope


# ------------------------------------------------------------------------------ tokens

BAD_TOKENS = ["", " ", "a.b", "a b", "*", ">", "a>", "ä", "a\n", "\n", "x" * 65, "a/b"]


@pytest.mark.parametrize("bad", BAD_TOKENS)
@pytest.mark.parametrize(
    "key",
    [JOB, TeamKey("a"), PoolKey("a"), PlanKey("a"), NODE, MEMBER],
    ids=lambda key: type(key).__name__,
)
def test_a_bad_token_is_refused_in_every_place_of_every_key(key: Key, bad: str):
    assert subjects.checked(key) == key
    for name in key._fields:
        if name == "attempt":
            continue
        wrong = key._replace(**{name: bad})
        with pytest.raises(InvalidTokenError, match=name):
            subjects.checked(wrong)


@given(st.sampled_from(["job", "team", "pool", "plan", "node", "member"]), st.data())
def test_good_tokens_pass(family: str, data: st.DataObject):
    key = data.draw(keys(key_of(family)))
    assert subjects.checked(key) is key


# ----------------------------------------------------------------------------- hostile


@pytest.mark.parametrize(
    "subject",
    [
        "",
        ".",
        "tm",
        "tm.",
        "tm..",
        "tm.job",
        "tm.job.default.J1",
        "tm.job.default.J1.",
        "tm.job..J1.submitted",
        "tm.job.*.J1.submitted",
        "tm.job.default.>",
        "tm.job.default.J1.submitted.more",
        "tm.job.default.J1.submitted\n",
        "tm.job.default.J 1.submitted",
        "tm.job.default.é.submitted",
        f"tm.job.default.{'x' * 65}.submitted",
        "TM.job.default.J1.submitted",
        "tm.jobs.default.J1.submitted",
        "tm.plan",
        "tm.plan.local.more",
        "tm.member.local.n1.J1.one.prepared",
        "tm.member.local.n1.J1.-1.prepared",
        "tm.member.local.n1.J1.01.prepared",
        "tm.member.local.n1.J1.1.prepared.0",
        "tm.member.local.n1.J1.1.rank_exited",
        "tm.member.local.n1.J1.1.rank_exited.-1",
        "tm.member.local.n1.J1.1.rank_exited.0.0",
        "tm.member.local.n1.J1.٣.prepared",
        f"tm.member.local.n1.J1.{'9' * 64}.prepared",
        "tm.assign.local.n1.J1",
    ],
)
def test_a_subject_that_is_none_of_ours_is_none(subject: str):
    assert subjects.parse(subject) is None


FAMILIES = ["job", "note", "plan", "node", "team", "pool", "member"]
words = st.sampled_from(["tm", *FAMILIES, "rank_exited", "*", ">", "0", "1", "-1", "x"])


@settings(max_examples=200, deadline=None)
@given(st.lists(words | st.text(max_size=4), max_size=9).map(".".join) | st.text())
def test_parsing_is_total_and_has_one_spelling(subject: str):
    parsed = subjects.parse(subject)
    subjects.scope_of(subject)
    if parsed is None:
        return
    assert subjects.checked(parsed.key) == parsed.key
    parts = ["tm", parsed.family, *map(str, parsed.key), parsed.kind]
    rank = [] if parsed.rank < 0 else [str(parsed.rank)]
    assert ".".join(filter(None, [*parts, *rank])) == subject


def test_assignments_find_their_way_back():
    spelled = subjects.assign(NODE, JobId("J1"))
    assert spelled == "tm.assign.local.n1.J1"
    assert subjects.parse_assign(spelled) == (NODE, JobId("J1"))
    assert subjects.assignments(NODE) == "tm.assign.local.n1.>"


def test_a_key_is_described_for_people():
    assert subjects.describe(JOB) == "job J1"
    assert subjects.describe(MEMBER) == "attempt 2 of job J1 on n1"
    assert subjects.describe(NODE) == "node n1"
    assert subjects.describe(TeamKey("a")) == "team a"
    assert subjects.describe(PlanKey("p")) == "pool p"
    assert subjects.describe(PoolKey("p")) == "pool p"
