"""The other forms of a job file become the canonical one, field by field."""

from pathlib import Path
from typing import Any

import pytest
from tests.unit.jobfile.everything import SITE

from trainmaster.core.errors import SpecRejectedError
from trainmaster.core.spec import CheckpointSpec, JobSpec, KeepSpec, ObserveSpec
from trainmaster.jobfile.dialects.places import of_each_job
from trainmaster.jobfile.reading import Source, read
from trainmaster.jobfile.request import JobRequest
from trainmaster.jobfile.schema import PLAIN_FIELDS
from trainmaster.jobfile.table import Table
from trainmaster.jobfile.values import DIALECTS

pytestmark = pytest.mark.unit

SAMPLES = Path(__file__).parents[3] / "examples" / "dialects"
BESIDE = "command: python train.py\n"


def sample(name: str) -> str:
    return (SAMPLES / f"{name}.yaml").read_text()


def a_request(text: str, **changes: Any) -> JobRequest:
    source = Source(text=text, name="a.yaml", directory="/home/ada", **changes)
    return read(source, SITE)


def spec_of(text: str) -> JobSpec:
    return a_request(text).spec


def said_of(text: str, **changes: Any) -> str:
    with pytest.raises(SpecRejectedError) as caught:
        a_request(text, **changes)
    return str(caught.value)


def test_the_form_job_is_taken_as_it_is():
    spec = spec_of(sample("job"))
    assert (spec.name, spec.dialect) == ("pretrain-demo", "job")
    assert spec.command == ("python", "train.py", "--config", "config.yaml")
    assert spec.environment.container.image == "registry.example/train:tag"
    assert (spec.nodes, spec.accelerators_per_node, spec.ranks_per_node) == (1, 8, 8)
    assert (spec.cpus_per_node, spec.memory_bytes_per_node) == (64, 512 * 2**30)
    assert spec.data_directory == "/stores/bucket/dataset"
    assert spec.checkpoint == CheckpointSpec(directory="/stores/bucket/ckpt/{job}")
    assert spec.retries_max == 2


def test_the_form_workflow_is_taken_as_it_is_with_a_command():
    spec = spec_of(sample("workflow") + BESIDE)
    assert (spec.name, spec.dialect) == ("model-finetune", "workflow")
    assert (spec.nodes, spec.accelerators_per_node, spec.ranks_per_node) == (2, 4, 4)
    assert (spec.cpus_per_node, spec.memory_bytes_per_node) == (32, 256 * 10**9)
    assert spec.env["PARAM_BATCH_SIZE"] == "64"
    assert spec.env["PARAM_CHECKPOINT_INTERVAL_STEPS"] == "500"
    assert spec.retries_max == 2
    assert spec.data_directory == "/stores/shared-storage/dataset/version"
    assert spec.output_directory == "/stores/object-storage/training-output/{job}"
    observe = ObserveSpec(metrics_interval_seconds=30.0, log_level="info")
    assert spec.observe == observe


def test_the_form_experiment_is_taken_as_it_is_with_a_command():
    spec = spec_of(sample("experiment") + BESIDE)
    assert (spec.name, spec.dialect) == ("training_baseline_v1", "experiment")
    assert (spec.nodes, spec.accelerators_per_node, spec.ranks_per_node) == (2, 4, 4)
    assert spec.parameters == {
        "strategy": "collective_data_parallel",
        "gradient_accumulation_steps": "8",
        "communication_timeout_seconds": "1800",
        "request_timeout_seconds": "1800",
    }
    baseline = "/stores/experiments/training_baseline_v1"
    assert spec.checkpoint == CheckpointSpec(
        directory=f"{baseline}/checkpoints/{{job}}",
        interval_steps=500,
        keep=KeepSpec(last=3),
    )
    assert spec.output_directory == f"{baseline}/logs/{{job}}"
    assert spec.observe == ObserveSpec(
        metrics_interval_steps=20,
        export_interval_seconds=30.0,
        health_interval_seconds=30.0,
    )
    assert spec.on == {"nan": "notify", "checkpoint_failure": "notify"}
    assert spec.retries_max == 2


@pytest.mark.parametrize("name", ["workflow", "experiment"])
def test_a_form_without_a_command_says_how_to_give_one(name: str):
    assert said_of(sample(name)).splitlines()[0] == (
        f"a.yaml:3:1 `command` is missing: write `command:` beside `{name}:`, "
        "or submit it with `--template NAME`"
    )


@pytest.mark.parametrize("name", ["workflow", "experiment"])
def test_a_template_gives_a_form_its_command(name: str):
    template = "command: python train.py\nenv: {A: b}\nretries: 9\n"
    request = a_request(sample(name), template=template, template_name="tuned")
    assert request.spec.command == ("python", "train.py")
    assert (request.spec.env["A"], request.spec.template) == ("b", "tuned")
    assert request.spec.retries_max == 2  # the file's own wins


@pytest.mark.parametrize("name", ["job", "workflow", "experiment"])
def test_the_canonical_form_of_a_sample_means_the_same(name: str):
    beside = "" if name == "job" else BESIDE
    request = a_request(sample(name) + beside)
    again = a_request(request.canonical())
    assert again.spec == request.spec.model_copy(update={"dialect": ""})


def test_a_fault_is_told_in_the_words_of_the_form():
    wrong = sample("workflow").replace("processes_per_node: 4", "processes_per_node: 3")
    line = wrong.splitlines().index("    processes_per_node: 3") + 1
    assert said_of(wrong + BESIDE).startswith(
        f"a.yaml:{line}:5 `workflow.training.processes_per_node` is 3, which does not "
        "divide `workflow.resources.accelerators_per_node: 4`"
    )


def test_what_is_said_twice_is_refused():
    text = sample("job") + "name: other\ncheckpoint: {directory: c}\n"
    assert "`name` is said by `job.name` too" in said_of(text)
    assert "said by `job.data.checkpoint_dir` too" in said_of(text)


def leaves(table: Table, prefix: str = "") -> dict[str, str]:
    found: dict[str, str] = {}
    for field in table:
        name = f"{prefix}{field.name}"
        inner = leaves(field.kind.fields, f"{name}.")
        found |= inner or {name: field.becomes}
    return found


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_every_field_of_a_form_becomes_one_that_there_is(name: str):
    known = {each.name for each in PLAIN_FIELDS}
    for field, becomes in leaves(DIALECTS[name].table).items():
        assert becomes.partition(".")[0] in known, field


@pytest.mark.parametrize(
    ("path", "placed"),
    [
        ("storage://bucket/ckpt", "storage://bucket/ckpt/{job}"),
        ("storage://a/{job}/x", "storage://a/{job}/x"),
        ("storage://out/task-id", "storage://out/{job}"),
        ("/out/", "/out/{job}"),
    ],
)
def test_every_job_writes_into_a_folder_of_its_own(path: str, placed: str):
    assert of_each_job(path) == placed
