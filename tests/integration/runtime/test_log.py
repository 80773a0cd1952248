"""Appending to the real log: whole or not at all, once, and only on what was read."""

from collections.abc import AsyncGenerator

import pytest

from trainmaster.core.decision import Group, Write
from trainmaster.core.envelope import Entry, decode
from trainmaster.core.errors import NotAllowedError
from trainmaster.core.events import AttemptPlaced, CancelRequested, Held, PlanMade
from trainmaster.core.ids import JobId, JobKey, PlanKey
from trainmaster.core.notes import CheckpointVerified
from trainmaster.runtime.heads import Head, Heads
from trainmaster.runtime.service import Env, open_env
from trainmaster.runtime.stack import Stack
from trainmaster.testkit.builders import a_placed, a_submitted

pytestmark = pytest.mark.integration


def key(name: str) -> JobKey:
    return JobKey("default", JobId(name))


def submitted(name: str) -> Group:
    return (Write(key=key(name), event=a_submitted()),)


@pytest.fixture
async def submission(stack: Stack) -> AsyncGenerator[Env]:
    env = await open_env("submission", stack.settings("submission", port=0))
    yield env
    await env.bus.close()


@pytest.fixture
async def scheduler(stack: Stack) -> AsyncGenerator[Env]:
    env = await open_env("scheduler", stack.settings("scheduler", port=0))
    yield env
    await env.bus.close()


async def heads_of(env: Env) -> Heads:
    heads = Heads()
    for entry in await env.log.entries("JOBS", ">"):
        heads.observe(entry)
    return heads


async def kinds(env: Env) -> list[str]:
    found = await env.log.entries("JOBS", ">")
    return [e.event.kind for e in found if isinstance(e, Entry)]


async def test_groups_are_stored_in_order_with_their_envelope(submission: Env):
    appended = await submission.log.append([submitted("A"), submitted("B")], Heads())
    assert appended.whole
    first, second = await submission.log.entries("JOBS", "tm.job.>")
    assert isinstance(first, Entry)
    assert isinstance(second, Entry)
    assert (first.key, second.key) == (key("A"), key("B"))
    assert first.event == a_submitted()
    assert first.id != second.id


async def test_one_stale_chain_does_not_hold_up_the_other_groups(submission: Env):
    assert (await submission.log.append([submitted("A")], Heads())).whole
    appended = await submission.log.append(
        [submitted("A"), submitted("B"), submitted("C")],
        Heads(by_scope={"tm.job.default.A.>": Head(seq=99, id="x")}),
    )
    assert appended.seqs[0] is None
    assert None not in appended.seqs[1:]
    assert appended.refused == 1
    assert await kinds(submission) == ["submitted"] * 3


async def test_the_same_decision_said_twice_is_stored_once(submission: Env):
    await submission.log.append([submitted("A")], Heads())
    again = await submission.log.append([submitted("A")], Heads())
    assert await kinds(submission) == ["submitted"]
    assert again.refused == 1, "a lost answer looks like a conflict: reading tells"


async def test_an_old_id_on_a_newer_head_is_refused(submission: Env):
    """A duplicate older than the expectation is not this decision."""
    await submission.log.append([submitted("A")], Heads())
    heads = await heads_of(submission)
    hold = (Write(key=key("A"), event=Held(by="me")),)
    assert (await submission.log.append([hold], heads)).whole
    newer = await heads_of(submission)
    scope = "tm.job.default.A.>"
    forged = Heads(
        by_scope={
            scope: Head(seq=newer.by_scope[scope].seq, id=heads.by_scope[scope].id)
        }
    )
    assert not (await submission.log.append([hold], forged)).whole


async def test_of_two_racing_writers_one_wins(submission: Env):
    await submission.log.append([submitted("A")], Heads())
    heads = await heads_of(submission)
    cancel = (Write(key=key("A"), event=CancelRequested(by="one")),)
    hold = (Write(key=key("A"), event=Held(by="two")),)
    results = [await submission.log.append([g], heads) for g in (cancel, hold)]
    assert [r.whole for r in results] == [True, False]


async def test_a_stale_plan_is_refused_whole(submission: Env, scheduler: Env):
    await submission.log.append([submitted("A"), submitted("B")], Heads())
    heads = await heads_of(scheduler)
    plans = [
        (
            Write(key=key(name), event=a_placed(1)),
            Write(key=PlanKey("local"), event=PlanMade(placements=1)),
        )
        for name in ("A", "B")
    ]
    assert (await scheduler.log.append([plans[0]], heads)).whole
    assert not (await scheduler.log.append([plans[1]], heads)).whole
    assert (await kinds(scheduler)).count(AttemptPlaced.kind) == 1


async def test_a_note_repeated_is_stored_once(stack: Stack):
    env = await open_env(
        "checkpoint-manager", stack.settings("checkpoint-manager", port=0)
    )
    note = Write(key=key("A"), event=CheckpointVerified(step=5), cause="step-5")
    first = await env.log.say(note)
    assert await env.log.say(note) == first
    await env.bus.close()


async def test_a_foreign_event_is_refused_at_once_and_by_name(submission: Env):
    with pytest.raises(NotAllowedError, match="attempt_placed"):
        await submission.log.append(
            [(Write(key=key("A"), event=a_placed(1)),)], Heads()
        )


async def test_history_reads_every_page_of_a_filter(submission: Env):
    groups = [submitted(f"J{i}") for i in range(600)]
    await submission.log.append(groups, Heads())
    found = [decode(raw).id async for raw in submission.log.history("JOBS", "tm.job.>")]
    assert len(found) == len(set(found)) == 600
