"""Which job a name means, and why a job is where it is."""

from http import HTTPStatus
from typing import Any

import pytest

from trainmaster.console import answers
from trainmaster.console.finding import find, namesakes
from trainmaster.console.reasons import Now
from trainmaster.console.state import State, fold
from trainmaster.core.facts import NodeLost
from trainmaster.core.ids import JobId, JobKey, NodeKey
from trainmaster.core.messages import WaitReason, WaitReasons
from trainmaster.core.notes import CheckpointVerified
from trainmaster.runtime.http import ProblemError
from trainmaster.testkit.builders import (
    KEY,
    a_history,
    a_log,
    a_spec,
    a_submitted,
    an_entry,
)

pytestmark = pytest.mark.unit

ENDED = "submitted placed ordered started ended"


def a_state(words: str, *, state: State | None = None, key: JobKey = KEY) -> State:
    """Fold a life."""
    known = State() if state is None else state
    for entry in a_log(a_history(words), key=key):
        _ = tuple(fold(known, entry))
    return known


def told(state: State, *, now: Now | None = None) -> Any:
    return answers.job_details(state.jobs[KEY], now or Now())


def key_of(number: int) -> JobKey:
    return JobKey("default", JobId(f"01J{number:03d}"))


def named_twice(*lives: str) -> State:
    """Fold jobs of one name, the oldest first."""
    state = State()
    for number, words in enumerate(lives):
        for place, event in enumerate(a_history(words)):
            seq = 100 * number + place
            _ = tuple(fold(state, an_entry(event, key=key_of(number), seq=seq)))
    return state


def test_a_name_means_the_one_job_of_it_that_is_not_over():
    over = "submitted cancel cancelled"
    state = named_twice(over, "submitted", over)
    found = find(state.jobs, "train")
    assert found.job.key == key_of(1)
    assert namesakes(state.jobs, found) == ["01J002", "01J000"]


def test_a_name_of_several_jobs_that_are_not_over_is_refused_with_their_ids():
    state = named_twice("submitted", "submitted cancel cancelled", "submitted placed")
    with pytest.raises(ProblemError, match="2 jobs called 'train' are not over") as e:
        find(state.jobs, "train")
    assert e.value.status is HTTPStatus.CONFLICT
    assert e.value.members["candidates"] == ["01J002", "01J000"]
    assert "01J002 (placed), 01J000 (queued)" in str(e.value)


def test_a_name_whose_jobs_are_all_over_means_the_newest():
    over = "submitted cancel cancelled"
    assert find(named_twice(over, over).jobs, "train").job.key == key_of(1)


def test_jobs_are_found_by_id_prefix_and_name():
    state = State()
    for number, name in enumerate(("a", "b", "c")):
        event = a_submitted(a_spec(name=name))
        _ = tuple(fold(state, an_entry(event, key=key_of(number), seq=number)))
    for reference, number in (("01J000", 0), ("01J001", 1), ("c", 2), ("b", 1)):
        assert find(state.jobs, reference).job.key == key_of(number)
    with pytest.raises(ProblemError, match="several jobs") as several:
        find(state.jobs, "01J")
    assert several.value.status is HTTPStatus.CONFLICT
    assert several.value.members["candidates"] == ["01J000", "01J001", "01J002"]
    with pytest.raises(ProblemError, match="tm list"):
        find(state.jobs, "zzz")


def test_a_held_job_names_what_lets_it_go_on():
    state = State()
    held = a_submitted(a_spec(hold=True))
    _ = tuple(fold(state, an_entry(held, key=KEY)))
    assert told(state)["state"] == "held"
    assert told(state)["reason"] == "held; `tm release train` lets it go on"


def test_a_stopping_job_names_the_nodes_it_waits_for():
    state = a_state("submitted placed ordered started cancel")
    assert "on n1, n2 have ended" in told(state)["reason"]
    _ = tuple(fold(state, an_entry(NodeLost(), key=NodeKey("local", "n2"))))
    job = told(state, now=Now(nodes=state.nodes))
    assert job["state"] == "stopping"
    assert "on n2 (lost: start its agent again) have ended" in job["reason"]
    assert [each["code"] for each in job["waiting"]] == ["STOPPING"]


def test_a_settling_job_names_the_nodes_whose_proof_it_waits_for():
    job = told(a_state(f"{ENDED} reclaimed:n1"))
    assert job["state"] == "settling"
    proof = "waits for proof that nothing of attempt 1 is left on n2"
    assert job["reason"] == f"rank 0 exited with 1; {proof}"
    assert job["waiting"] == [{"code": "PROOF", "message": proof}]


def test_a_success_names_its_checkpoint():
    state = State()
    life = a_history("submitted placed ordered started completed reclaimed succeeded")
    for seq, event in enumerate(life, 1):
        _ = tuple(fold(state, an_entry(event, key=KEY, seq=seq)))
        if seq == 4:
            note = CheckpointVerified(attempt=1, step=50, path="/c/50")
            _ = tuple(fold(state, an_entry(note, key=KEY, seq=40)))
    job = told(state)
    assert job["reason"].endswith(", checkpoint of step 50 verified")
    assert job["saved"] == {"path": "/c/50", "step": 50}


def test_a_checkpoint_from_before_the_job_is_not_its_own():
    state = a_state("submitted")
    note = CheckpointVerified(attempt=0, step=50, path="/c/50")
    _ = tuple(fold(state, an_entry(note, key=KEY, seq=40)))
    assert told(state)["saved"] is None


def test_the_reason_is_why_the_job_is_where_it_is():
    why = WaitReasons(reasons=(WaitReason(code="CAPACITY", message="no room"),))
    reasons = {
        "submitted": "no room",
        "submitted placed ordered started": "",
        f"{ENDED} reclaimed": "rank 0 exited with 1",
        f"{ENDED} reclaimed failed": "done",
    }
    for words, reason in reasons.items():
        assert told(a_state(words), now=Now(waiting=why))["reason"] == reason
