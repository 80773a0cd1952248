"""Ids, digests and errors: names that follow from what they name."""

import re
from hashlib import sha256
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmaster.core import errors
from trainmaster.core.errors import (
    AlreadyExistsError,
    Fault,
    InvalidTokenError,
    LeadershipLostError,
    LogLostError,
    NotAllowedError,
    NotFoundError,
    PermanentError,
    SpecRejectedError,
    TrainmasterError,
    TransientError,
    UnreachableError,
)
from trainmaster.core.ids import EventId, event_id, token
from trainmaster.core.spec import JobSpec, Launch, spec_digest
from trainmaster.testkit.strategies import specs

pytestmark = pytest.mark.unit


def an_id(**changes: str | int) -> EventId:
    plain: dict[str, str | int] = {
        "epoch": 1,
        "scope": "tm.job.default.J1.>",
        "head": "abc",
        "kind": "held",
        "cause": "request-1",
    }
    told = plain | changes
    return event_id(
        epoch=int(told["epoch"]),
        scope=str(told["scope"]),
        head=str(told["head"]),
        kind=str(told["kind"]),
        cause=str(told["cause"]),
    )


def test_the_same_cause_has_the_same_id():
    assert an_id() == an_id()
    assert re.fullmatch(r"[0-9a-f]{32}", an_id())


def test_an_id_is_the_same_in_every_release():
    assert an_id() == "17f37ee2abd888e6822ca2e00b31cab0"


@pytest.mark.parametrize(
    "change",
    [
        {"epoch": 2},
        {"scope": "tm.job.default.J2.>"},
        {"head": ""},
        {"kind": "released"},
        {"cause": "request-2"},
    ],
)
def test_whatever_differs_makes_another_id(change: dict[str, str | int]):
    assert an_id(**change) != an_id()


def test_no_two_combinations_share_an_id():
    parts = product((1, 2), ("a", "b"), ("", "a"), ("k", "l"), ("", "c", "c\nc"))
    ids = [
        an_id(epoch=epoch, scope=scope, head=head, kind=kind, cause=cause)
        for epoch, scope, head, kind, cause in parts
    ]
    assert len(set(ids)) == len(ids) == 48


@given(st.text())
def test_a_token_is_what_a_subject_can_hold(text: str):
    if re.fullmatch(r"[A-Za-z0-9_-]{1,64}", text):
        assert token("team", text) == text
    else:
        with pytest.raises(InvalidTokenError):
            token("team", text)


# ------------------------------------------------------------------------------- specs


def test_a_digest_is_the_same_in_every_release():
    assert spec_digest(JobSpec()) == sha256(b"{}").hexdigest()
    full = JobSpec(
        name="train",
        command=("python", "train.py"),
        labels={"b": "2", "a": "1"},
        memory_bytes_per_node=2**40,
        launch=Launch.ONCE_PER_NODE,
        time_limit_seconds=1.5,
    )
    assert spec_digest(full) == (
        "81e83cf2c5917778fcd6213b28c22175937c707f3b7f63899b9545e1b8c6f922"
    )


@settings(max_examples=60, deadline=None)
@given(specs())
def test_equal_specs_have_equal_digests(spec: JobSpec):
    read_back = JobSpec.from_json(spec.to_json())
    turned = spec.model_copy(
        update={
            "labels": dict(reversed(spec.labels.items())),
            "env": dict(reversed(spec.env.items())),
        }
    )
    assert read_back == turned == spec
    assert spec_digest(read_back) == spec_digest(turned) == spec_digest(spec)


@settings(max_examples=60, deadline=None)
@given(specs(), specs())
def test_different_specs_have_different_digests(one: JobSpec, other: JobSpec):
    assert (spec_digest(one) == spec_digest(other)) is (one == other)


def test_the_number_of_ranks_follows_from_nodes():
    assert JobSpec(nodes=3, ranks_per_node=4).ranks == 12


# ------------------------------------------------------------------------------ errors

EXAMPLES = [
    (
        InvalidTokenError(name="team", value="a.b"),
        (
            "team 'a.b' is not usable in a subject; "
            "use 1 to 64 letters, digits, `_` or `-`"
        ),
    ),
    (
        SpecRejectedError(
            source="train.yaml",
            faults=[
                Fault(field="nodes", message="`nodes: 0` is too few", line=3, column=1),
                Fault(field="name", message="`nam` is unknown"),
            ],
        ),
        (
            "train.yaml:3:1 `nodes: 0` is too few\n"
            "train.yaml: `nam` is unknown\n"
            "Nothing was submitted."
        ),
    ),
    (
        NotAllowedError(action="cancel job J1", hint="ask its owner"),
        "not allowed to cancel job J1; ask its owner",
    ),
    (
        NotFoundError(kind="job", name="J1", hint="see `tm list`"),
        "no job 'J1'; see `tm list`",
    ),
    (
        AlreadyExistsError(kind="team", name="a", hint="choose another name"),
        "team 'a' exists already; choose another name",
    ),
    (
        LogLostError(stream="JOBS", expected="seq 9", found="seq 4"),
        (
            "stream JOBS lost its tail: expected seq 9, found seq 4; "
            "nothing is appended any more, re-seed it from the archive "
            "(docs/architecture.md, `A lost log`)"
        ),
    ),
    (
        UnreachableError(what="NATS", address="127.0.0.1:4222", hint="run `tm up`"),
        "NATS at 127.0.0.1:4222 does not answer; run `tm up`",
    ),
    (
        LeadershipLostError(service="reaper"),
        "reaper: another replica is active, standing by",
    ),
]


@pytest.mark.parametrize(
    ("error", "sentence"), EXAMPLES, ids=lambda value: type(value).__name__
)
def test_an_error_names_the_thing_and_the_next_step(
    error: TrainmasterError, sentence: str
):
    assert str(error) == sentence


def test_every_error_is_permanent_or_transient_and_has_an_example():
    kinds = {
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, TrainmasterError)
    }
    roots = {TrainmasterError, PermanentError, TransientError}
    assert kinds - roots == {type(error) for error, _ in EXAMPLES}
    assert all(
        issubclass(kind, PermanentError) is not issubclass(kind, TransientError)
        for kind in kinds - roots
    )


def test_the_tree_at_the_top_of_the_module_lists_every_error():
    documented = set(re.findall(r"\w+Error", errors.__doc__ or ""))
    assert documented == {name for name in vars(errors) if name.endswith("Error")}
