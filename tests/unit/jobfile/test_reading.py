"""What a job file says."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmaster.core.errors import SpecRejectedError
from trainmaster.core.ids import JobId
from trainmaster.core.spec import (
    CheckpointSpec,
    JobSpec,
    Launch,
    RunAs,
    SuccessSpec,
)
from trainmaster.jobfile.installation import Site
from trainmaster.jobfile.reading import Source, read
from trainmaster.jobfile.request import JobRequest
from trainmaster.jobfile.schema import FIELDS

pytestmark = pytest.mark.unit

DIRECTORY = "/home/ada/lm"
USER = RunAs(uid=1000, gid=1000, name="ada")
SITE = Site(storage_root="/stores")
SMALLEST = "name: lm\ncommand: python train.py\n"
WHOLE = """\
name: lm
project: words
team: vision
labels: {stage: dev, run: 7}
command: [python, train.py, --steps, 200]
work_directory: src
env:
  SEED: 7
  LR: 1e-3
  DEBUG: no
  EMPTY: ""
pool: local
nodes: 2
accelerators_per_node: 8
ranks_per_node: 4
cpus_per_node: 16
memory_per_node: 512Gi
launch: per_rank
checkpoint:
  directory: ../checkpoints/{job}
  resume_from: /data/old
output_directory: /results/{job}
data_directory: data
success: {step: 1000, checkpoint: true}
retries: 5
time_limit: 2h
total_limit: 1d
stop_grace: 30
priority: high
hold: true
"""


def a_request(text: str, **changes: Any) -> JobRequest:
    source = Source(text=text, name="train.yaml", directory=DIRECTORY, **changes)
    return read(source, SITE)


def spec_of(text: str, **changes: Any) -> JobSpec:
    return a_request(text, **changes).spec_of(JobId("J1"), USER)


def test_the_smallest_file_has_a_name_and_a_command():
    assert spec_of(SMALLEST) == JobSpec(
        name="lm",
        command=("python", "train.py"),
        work_directory=DIRECTORY,
        output_directory=f"{DIRECTORY}/tm-runs/J1",
        user=USER,
    )
    assert a_request(SMALLEST).team == "default"


def test_every_field_arrives():
    assert spec_of(WHOLE) == JobSpec(
        name="lm",
        project="words",
        labels={"stage": "dev", "run": "7"},
        command=("python", "train.py", "--steps", "200"),
        work_directory=f"{DIRECTORY}/src",
        env={"SEED": "7", "LR": "1e-3", "DEBUG": "no", "EMPTY": ""},
        pool="local",
        nodes=2,
        accelerators_per_node=8,
        ranks_per_node=4,
        cpus_per_node=16,
        memory_bytes_per_node=512 * 2**30,
        launch=Launch.PER_RANK,
        checkpoint=CheckpointSpec(
            directory=f"{DIRECTORY}/checkpoints/J1", resume_from="/data/old"
        ),
        output_directory="/results/J1",
        data_directory=f"{DIRECTORY}/src/data",
        success=SuccessSpec(step=1000, checkpoint=True),
        retries_max=5,
        time_limit_seconds=7200.0,
        total_limit_seconds=86_400.0,
        stop_grace_seconds=30.0,
        priority=100,
        priority_class="high",
        hold=True,
        user=USER,
    )
    assert a_request(WHOLE).team == "vision"


def test_two_jobs_of_one_file_write_into_different_folders():
    request = a_request(SMALLEST)
    first = request.spec_of(JobId("J1"), USER)
    second = request.spec_of(JobId("J2"), USER)
    assert first.output_directory != second.output_directory


@pytest.mark.parametrize(
    ("lines", "ranks"),
    [
        ("", 1),
        ("accelerators_per_node: 8", 8),
        ("accelerators_per_node: 8\nlaunch: once_per_node", 1),
        ("accelerators_per_node: 8\nranks_per_node: 2", 2),
    ],
)
def test_there_is_one_rank_for_each_accelerator(lines: str, ranks: int):
    assert spec_of(SMALLEST + lines).ranks_per_node == ranks


def test_a_name_can_be_given_outside_the_file():
    assert spec_of("command: x", job_name="other").name == "other"
    assert spec_of(SMALLEST, job_name="other").name == "other"


def test_a_number_says_the_priority_as_well():
    assert spec_of(f"{SMALLEST}priority: -7").priority == -7


def test_json_says_the_same_as_yaml():
    said = {
        "name": "lm",
        "command": ["python", "train.py"],
        "env": {"SEED": 7},
        "nodes": 2,
        "hold": False,
        "checkpoint": {"directory": "c"},
        "time_limit": "1h30m",
    }
    as_json = spec_of(json.dumps(said), json=True)
    assert as_json == spec_of(json.dumps(said))
    assert (as_json.nodes, as_json.env, as_json.time_limit_seconds) == (
        2,
        {"SEED": "7"},
        5400.0,
    )


def test_without_a_folder_paths_must_be_absolute():
    with pytest.raises(SpecRejectedError, match="`work_directory` must be absolute"):
        read(Source(text=SMALLEST))
    there = read(Source(text=f"{SMALLEST}work_directory: /there"))
    assert there.spec.work_directory == "/there"


NAMES = sorted(each.name for each in FIELDS)
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=10), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(NAMES), VALUES))
@settings(max_examples=200)
def test_any_values_are_taken_whole_or_rejected_with_places(said: dict[str, Any]):
    source = Source(text=json.dumps(said), directory=DIRECTORY, json=True)
    try:
        spec = read(source).spec_of(JobId("J1"), USER)
    except SpecRejectedError as error:
        assert error.faults  # noqa: PT017 - either outcome is right, none may be empty
    else:
        assert JobSpec.from_json(spec.to_json()) == spec


@given(st.text(max_size=200))
def test_no_text_breaks_the_reader(text: str):
    with pytest.raises(SpecRejectedError, match="Nothing was submitted"):
        read(Source(text=text, directory=DIRECTORY))
