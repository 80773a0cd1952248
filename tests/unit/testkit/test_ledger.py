"""Rule 5 broken: devices given twice, charges lost, proofs missing."""

from dataclasses import replace

import pytest

from trainmaster.core.envelope import Entry
from trainmaster.core.events import (
    Archived,
    AttemptPlaced,
    AttemptReclaimed,
    Requeued,
    Transition,
)
from trainmaster.core.facts import Capacity, NodeRegistered
from trainmaster.core.ids import JobId, JobKey, NodeKey
from trainmaster.core.record import Job
from trainmaster.core.spec import JobSpec
from trainmaster.core.values import Proof
from trainmaster.testkit.builders import (
    KEY,
    a_history,
    a_log,
    a_placed,
    a_spec,
    a_submitted,
    an_entry,
)
from trainmaster.testkit.faults import letting, names, twisting
from trainmaster.testkit.ledger import Device, Holder, charges
from trainmaster.testkit.replay import replay
from trainmaster.testkit.rules import check_history

pytestmark = pytest.mark.unit

RUN = "submitted placed ordered started"
OTHER = JobKey("default", JobId("job-2"))


def beside(mine: list[Transition], theirs: list[Transition]) -> list[Entry]:
    """Two jobs, one after the other on the log."""
    return a_log(mine) + a_log(theirs, key=OTHER, first=len(mine) + 1)


def a_told_log(words: str, spec: JobSpec | None = None) -> list[Entry]:
    return a_log(a_history(words, spec=spec))


def test_a_device_that_is_held_is_not_given_again():
    found = check_history(beside(a_history(RUN), a_history(RUN)))
    assert names(
        found,
        "rule 5",
        "device 0 of n1 in pool local goes to attempt 1 of job job-2",
        "but attempt 1 of job job-1 still holds it",
    )


@pytest.mark.parametrize(
    "end",
    [
        "ended",
        "ended reclaimed:n2",
        "lost fenced",
        "lost failed",
        "cancel ended cancelled reclaimed:n2",
    ],
)
def test_a_device_is_held_until_its_node_is_reclaimed(end: str):
    found = check_history(beside(a_history(f"{RUN} {end}"), a_history(RUN)))
    assert names(found, "rule 5", "of n1", "still holds it")
    assert names(found, "rule 5", "of n2", "still holds it") is ("n2" not in end)


def test_a_reclaimed_device_may_be_given_again():
    mine = a_history(f"{RUN} ended reclaimed")
    assert check_history(beside(mine, a_history(RUN))) == []


def test_a_retry_does_not_get_the_devices_of_its_own_fenced_attempt():
    events = [*a_history(f"{RUN} lost fenced"), a_placed(2)]
    found = check_history(a_log(events))
    assert names(found, "rule 5", "goes to attempt 2", "but attempt 1")


def test_other_devices_other_pools_and_no_devices_are_no_conflict():
    spec = a_spec(pool="elsewhere")
    for theirs in (
        [a_submitted(), a_placed(1, device=1)],
        [a_submitted(spec), a_placed(1, spec=spec)],
        [a_submitted(), a_placed(1, spec=a_spec(accelerators_per_node=0))],
    ):
        assert check_history(beside(a_history(RUN), list(theirs))) == []


def test_a_device_twice_in_one_attempt_is_found():
    placed = a_placed()
    slot = placed.members[0].model_copy(update={"accelerators": (0, 0)})
    twice = placed.model_copy(update={"members": (slot, *placed.members[1:])})
    found = check_history(a_log([a_submitted(), twice]))
    assert names(found, "rule 5", "has a device twice")


def test_a_node_twice_in_one_attempt_is_found():
    log = a_log([a_submitted(), a_placed(1, ("n1", "n1"))])
    assert check_history(log) == []
    found = check_history(log, evolve=letting(AttemptPlaced))
    assert names(found, "rule 5", "has a node twice")


def test_a_charge_that_the_job_forgets_is_found():
    def forget(_before: Job, after: Job) -> Job:
        return replace(after, unreclaimed={})

    log = a_told_log(f"{RUN} lost fenced")
    found = check_history(log, evolve=twisting(Requeued, forget))
    assert names(
        found,
        "rule 5",
        "the job says nothing is charged, the log attempt 1: n1 (0,), n2 (0,)",
    )


def test_a_charge_that_the_job_keeps_is_found():
    def keep(before: Job, after: Job) -> Job:
        return replace(after, unreclaimed=before.unreclaimed)

    log = a_told_log(f"{RUN} ended reclaimed")
    found = check_history(log, evolve=twisting(AttemptReclaimed, keep))
    assert names(found, "rule 5", "the job says attempt 1", "the log nothing")


def test_giving_back_twice_is_found():
    log = a_told_log(f"{RUN} ended reclaimed:n1 reclaimed:n1")
    assert check_history(log) == []
    found = check_history(log, evolve=letting(AttemptReclaimed))
    assert names(found, "rule 5", "n1 is given back by attempt 1", "does not hold it")


@pytest.mark.parametrize("proofs", [(), (Proof(node="n1", how="closed"), Proof())])
def test_giving_back_without_a_proof_of_every_node_is_found(proofs: tuple[Proof, ...]):
    event = AttemptReclaimed(attempt=1, nodes=("n1", "n2"), proofs=proofs)
    found = check_history(a_log([*a_history(f"{RUN} ended"), event]))
    assert names(found, "rule 5", "n2 is given back without a proof")
    assert names(found, "rule 5", "n1 is given back without a proof") is (not proofs)


@pytest.mark.parametrize("named", [(), ("n1",), ("n1", "n2", "n3")])
def test_a_final_word_that_hides_or_invents_a_charge_is_found(named: tuple[str, ...]):
    *begin, word = a_history(f"{RUN} lost failed")
    assert check_history(a_log([*begin, word])) == []
    wrong = word.model_copy(update={"unreclaimed": named})
    found = check_history(a_log([*begin, wrong]))
    assert names(found, "rule 5", "as charged, not ['n1', 'n2']")


def test_a_final_word_may_leave_out_what_an_older_fenced_attempt_owes():
    *begin, word = a_history(f"{RUN} lost fenced placed lost failed")
    for named in (("n3", "n4"), ("n1", "n2", "n3", "n4")):
        told = word.model_copy(update={"unreclaimed": named})
        assert check_history(a_log([*begin, told])) == []
    hidden = word.model_copy(update={"unreclaimed": ("n1", "n2", "n3")})
    assert names(check_history(a_log([*begin, hidden])), "rule 5", "as charged, not")


def test_archiving_a_job_that_is_charged_is_found():
    log = a_told_log(f"{RUN} lost failed archived")
    assert check_history(log) == []
    found = check_history(log, evolve=letting(Archived))
    assert names(found, "rule 5", "archived while n1 is charged")


# ---------------------------------------------------------------------------- capacity


def registered(node: str, accelerators: int, seq: int) -> Entry:
    event = NodeRegistered(capacity=Capacity(accelerators=accelerators))
    return an_entry(event, key=NodeKey("local", node), seq=seq)


def test_a_device_that_was_never_registered_is_found():
    log = a_told_log(RUN)
    assert check_history([*log, registered("n1", 1, 1), registered("n2", 1, 2)]) == []
    missing = check_history([*log, registered("n1", 1, 1)])
    assert names(missing, "rule 5", "device 0 of n2", "never registered")
    small = check_history([*log, registered("n1", 1, 1), registered("n2", 0, 2)])
    assert names(small, "rule 5", "device 0 of n2", "never registered")


def test_a_node_that_lost_devices_once_had_them():
    nodes = [registered("n1", 1, 1), registered("n2", 1, 2), registered("n2", 0, 3)]
    assert check_history([*a_told_log(RUN), *nodes]) == []


# ----------------------------------------------------------------------------- charges


def test_charges_say_who_holds_what_at_the_end():
    log = beside(
        a_history(f"{RUN} lost fenced placed"),
        a_history("submitted placed", prefix="m"),
    )
    assert charges(replay(log)) == {
        Device("local", "n1", 0): Holder(KEY, 1),
        Device("local", "n2", 0): Holder(KEY, 1),
        Device("local", "n3", 0): Holder(KEY, 2),
        Device("local", "n4", 0): Holder(KEY, 2),
        Device("local", "m1", 0): Holder(OTHER, 1),
        Device("local", "m2", 0): Holder(OTHER, 1),
    }
    assert charges(replay(a_told_log(f"{RUN} ended reclaimed"))) == {}
