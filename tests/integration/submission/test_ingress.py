"""Jobs that other systems ask for and end over the bus: accepted or refused."""

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from tests.integration.submission.asking import JOB, a_job, events, fields
from tests.integration.submission.publisher import Publisher, publisher

from trainmaster.core.events import CancelRequested, Submitted
from trainmaster.core.ingress import Outcome
from trainmaster.testkit.cluster import Cluster

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="session")]


@pytest.mark.parametrize("structured", [False, True])
@pytest.mark.parametrize(
    "file", [JOB, json.dumps({"name": "lm", "command": "x", "work_directory": "/t"})]
)
async def test_a_job_is_submitted_from_text_and_from_json_in_both_modes(
    door: Cluster, ci: Publisher, file: str, *, structured: bool
):
    id_ = f"job-{structured}-{file[0] == '{'}"
    say = ci.say_structured if structured else ci.say
    await say("job_requested", id_, file=file)
    answer = await ci.told(id_)
    [submitted] = await events(door, answer.job)
    assert isinstance(submitted, Submitted)
    assert (submitted.by, submitted.origin) == ("source:ci", "/ci/42")
    assert (answer.team, answer.kind) == ("default", "job_requested")
    assert answer.seq > 0


async def test_a_wrong_file_is_refused_with_every_field_and_its_place(ci: Publisher):
    await ci.say("job_requested", "wrong", file=f"{JOB}nodes: many\nretrys: 3\n")
    answer = await ci.told("wrong")
    assert [(f.field, f.line) for f in answer.faults] == [("nodes", 4), ("retrys", 5)]
    assert "did you mean" in answer.faults[1].message.lower()


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({}, "file"),
        ({"file": 7}, "file"),
        ({"file": JOB, "format": "toml"}, "format"),
        ({"file": JOB, "directory": "here"}, "directory"),
        ({"file": f"{JOB}team: vision\n"}, "team"),
        ({"file": f"{JOB}pool: nowhere\n"}, "pool"),
        ({"file": JOB, "overlay": "prod"}, "overlays"),
    ],
)
async def test_what_is_wrong_with_a_job_is_named(
    ci: Publisher, data: dict[str, Any], field: str
):
    id_ = uuid.uuid4().hex
    await ci.say("job_requested", id_, **data)
    assert fields(await ci.told(id_)) == [field]


async def test_a_source_submits_only_for_its_team(door: Cluster, with_sources: Path):
    assert door.processes["submission"].poll() is None
    async with publisher(with_sources / "sources" / "elsewhere.json") as elsewhere:
        await elsewhere.say("job_requested", "mine", file=JOB)
        answer = await elsewhere.told("mine")
    assert fields(answer) == ["team"]
    assert "source:elsewhere" in answer.faults[0].message


async def test_a_job_is_cancelled_and_a_second_time_changes_nothing(
    door: Cluster, ci: Publisher
):
    key = await a_job(ci, "to-cancel")
    for id_ in ("cancel-1", "cancel-2"):
        await ci.say("cancel_requested", id_, job=key.job, reason="newer commit")
    first, second = await ci.told("cancel-1"), await ci.told("cancel-2")
    assert (first.outcome, second.outcome) == (Outcome.ACCEPTED, Outcome.ACCEPTED)
    assert first.seq > 0
    assert (second.seq, second.job) == (0, key.job)
    told = [e for e in await events(door, key.job) if isinstance(e, CancelRequested)]
    assert [(e.by, e.reason) for e in told] == [("source:ci", "newer commit")]


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({}, "job"),
        ({"job": "none"}, "job"),
        ({"job": "a b"}, "job"),
        ({"job": "x", "team": "a.b"}, "team"),
        ({"job": "x", "team": "vision"}, "team"),
    ],
)
async def test_what_is_wrong_with_a_cancel_is_named(
    ci: Publisher, data: dict[str, str], field: str
):
    id_ = uuid.uuid4().hex
    await ci.say("cancel_requested", id_, **data)
    assert fields(await ci.told(id_)) == [field]
