"""What an agent reads and says, word by word."""

import math
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.core.ids import JobId
from trainmaster.core.messages import Assignment, StartDetails
from trainmaster.core.spec import CheckpointSpec, JobSpec, Launch, RunAs
from trainmaster.core.values import MemberSlot, RestorePoint
from trainmaster.launcher.agent.ended import last_lines, rank_exit
from trainmaster.launcher.agent.environment import ReservedVariableError
from trainmaster.launcher.agent.metrics import read_sample
from trainmaster.launcher.agent.ranks import Place, rank_specs
from trainmaster.launcher.backends.model import Exit, JobUser

pytestmark = pytest.mark.unit

SPEC = JobSpec(
    name="lm",
    command=("python", "train.py"),
    work_directory="/home/ada/run",
    output_directory="/out",
    checkpoint=CheckpointSpec(directory="/ckpt"),
    ranks_per_node=2,
    user=RunAs(uid=1000, gid=100, groups=(7,), name="ada"),
)


def assignment(**changes: object) -> Assignment:
    return Assignment(
        team="default",
        attempt=3,
        spec=SPEC.model_copy(update=changes),
        spec_digest="d",
        slot=MemberSlot(node="n2", accelerators=(4, 5), first_rank=2, ranks=2),
        start=StartDetails(
            master_address="10.0.0.1",
            master_port=20001,
            addresses=("10.0.0.1", "10.0.0.2"),
            node_rank=1,
            restore=RestorePoint(path="/ckpt/step-000010", step=10),
        ),
    )


# ------------------------------------------------------------------------------ ranks


def test_every_rank_knows_its_place_its_files_and_where_to_resume():
    first, second = rank_specs(JobId("j"), assignment(), Place(home="/home/ada"))
    assert (first.key.rank, second.key.rank) == (2, 3)
    assert second.log == Path("/out/logs/attempt-3/rank-3.log")
    assert second.user == JobUser(uid=1000, gid=100, groups=(7,))
    assert (
        second.environment.items()
        >= {
            "RANK": "3",
            "LOCAL_RANK": "1",
            "WORLD_SIZE": "4",
            "NODE_RANK": "1",
            "MASTER_ADDR": "10.0.0.1",
            "MASTER_PORT": "20001",
            "CUDA_VISIBLE_DEVICES": "4,5",
            "TM_RESUME_FROM": "/ckpt/step-000010",
            "TM_RESUME_STEP": "10",
            "TM_CHECKPOINT_DIR": "/ckpt",
            "HOME": "/home/ada",
            "USER": "ada",
        }.items()
    )


def test_a_program_that_starts_the_ranks_itself_is_not_numbered():
    (spec, _) = rank_specs(JobId("j"), assignment(launch=Launch.ONCE_PER_NODE), Place())
    assert "RANK" not in spec.environment


def test_nobody_named_means_the_agents_own_user():
    specs = rank_specs(JobId("j"), assignment(user=RunAs()), Place())
    assert {spec.user for spec in specs} == {None}


def test_a_reserved_variable_is_refused():
    with pytest.raises(ReservedVariableError, match="MASTER_ADDR"):
        rank_specs(JobId("j"), assignment(env={"MASTER_ADDR": "x"}), Place())


# ------------------------------------------------------------------------------- ends


@pytest.mark.parametrize(
    ("end", "clean"),
    [
        (Exit(code=0), True),
        (Exit(code=0, by_us=True), False),
        (Exit(code=3), False),
        (Exit(signal=9), False),
        (Exit.not_known(), False),
    ],
)
def test_only_a_seen_zero_that_we_did_not_ask_for_is_clean(end: Exit, *, clean: bool):
    told = rank_exit(end, rank=1, node="n1", last_lines=())
    assert told.clean == clean
    assert told.unknown == end.unknown


def test_the_time_of_an_end_is_the_shims():
    told = rank_exit(
        Exit(signal=9, oom=True, at_unix_seconds=0.5),
        rank=1,
        node="n1",
        last_lines=("x",),
    )
    assert told.at == datetime(1970, 1, 1, 0, 0, 0, 500000, UTC)
    assert (told.signal, told.out_of_memory, told.last_lines) == (9, True, ("x",))


def test_a_child_that_was_killed_for_memory_does_not_spoil_exit_zero():
    told = rank_exit(Exit(code=0, oom=True), rank=0, node="n1", last_lines=())
    assert not told.out_of_memory


@given(st.binary(max_size=4000))
def test_last_lines_are_few_short_and_not_empty(tail: bytes):
    lines = last_lines(tail)
    assert len(lines) <= 20
    assert all(0 < len(line) <= 400 for line in lines)


def test_last_lines_are_the_last_ones_also_of_a_progress_bar():
    text = "\n".join(f"line {i}" for i in range(50)) + "\n\n 1%\r 2%\r\n"
    assert last_lines(text.encode())[-3:] == ("line 49", " 1%", " 2%")


# ---------------------------------------------------------------------------- metrics


def test_a_report_of_a_step_is_read():
    line = b'{"v":1,"t":1.5,"rank":0,"step":10,"phase":"step","loss":2.5,"lr":1}'
    sample = read_sample(line)
    assert sample is not None
    assert (sample.step, sample.phase) == (10, "step")
    assert sample.at == datetime(1970, 1, 1, 0, 0, 1, 500000, UTC)
    assert sample.values == {"loss": 2.5, "lr": 1.0}


def test_what_json_cannot_say_is_a_word():
    sample = read_sample(b'{"step":1,"loss":"nan","a":"-inf","b":"text","c":true}')
    assert sample is not None
    assert math.isnan(sample.values.pop("loss"))
    assert sample.values == {"a": -math.inf}


@pytest.mark.parametrize(
    "line", [b"", b"step 3 loss 2.1", b"[1]", b'{"loss":1}', b'{"step":-1}', b"\xff"]
)
def test_what_is_no_report_is_left_out(line: bytes):
    assert read_sample(line) is None


@given(st.binary(max_size=60))
def test_reading_a_line_never_raises(line: bytes):
    sample = read_sample(line)
    assert sample is None or sample.step >= 0
