"""The canonical form: every field arrives, and every spec can be written as a file."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.jobfile.everything import DIRECTORY, EVERYTHING, READY, SITE, SPEC

from trainmaster.core.errors import SpecRejectedError
from trainmaster.core.spec import JobSpec
from trainmaster.jobfile.installation import Site
from trainmaster.jobfile.reading import Source, read
from trainmaster.jobfile.request import JobRequest
from trainmaster.jobfile.schema import FIELDS, PLAIN_FIELDS
from trainmaster.jobfile.table import Acts, said

pytestmark = pytest.mark.unit

WITHOUT_A_FIELD = {"user", "dialect", "template", "overlay", "launch", "retries_max"}


def a_request(text: str, site: Site = READY, **changes: Any) -> JobRequest:
    return read(Source(text=text, directory=DIRECTORY, **changes), site)


def test_every_field_arrives_in_the_spec():
    assert a_request(EVERYTHING).spec == SPEC


def test_the_example_says_every_field_and_fills_every_part_of_the_spec():
    lines = f"\n{EVERYTHING}"
    names = {each.name for each in FIELDS if f"\n{each.name}:" in lines}
    assert {each.name for each in FIELDS} - names == {"command", "overlays"}
    plain = JobSpec()
    same = {f for f in JobSpec.model_fields if getattr(SPEC, f) == getattr(plain, f)}
    assert same <= WITHOUT_A_FIELD


def test_a_spec_reads_as_a_file_that_means_the_same():
    request = a_request(EVERYTHING)
    again = a_request(request.canonical())
    assert again.spec == request.spec
    assert again.team == "vision"
    assert again.canonical() == request.canonical()


WORDS = st.text(min_size=1, max_size=8).filter(str.strip)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "name": st.just("lm") | st.text("aäß模", min_size=1, max_size=9),
    "command": st.lists(st.just("x") | WORDS, min_size=1, max_size=3),
    "labels": st.dictionaries(st.sampled_from("abc"), st.integers() | st.text("xy")),
    "env": st.dictionaries(st.sampled_from(["A", "PATH", "B_2"]), st.text("a :'\"no")),
    "parameters": st.dictionaries(st.sampled_from(["lr", "bs"]), st.integers(0, 9)),
    "nodes": st.integers(1, 5)
    | st.sampled_from([{"min": 1, "max": 3}, {"min": 2, "max": 2}]),
    "accelerators_per_node": st.sampled_from([0, 1, 8]),
    "memory_per_node": st.integers(2**20, 2**45),
    "retries": st.integers(0, 9)
    | st.dictionaries(st.sampled_from(["user", "node"]), st.integers(0, 9)),
    "priority": st.sampled_from(["low", "normal", "critical", 7, -7, 0]),
    "seed": st.integers(0, 2**63 - 1),
    "venv": st.sampled_from([".venv", "/opt/venv"]),
    "time_limit": st.floats(0.001, 1e6).map(lambda x: round(x, 3)),
    "data": st.dictionaries(
        st.sampled_from(["a", "b"]), st.sampled_from(["x/y", "storage://s/a"])
    ),
    "checkpoint": st.fixed_dictionaries(
        {"directory": st.sampled_from(["c/{job}", "storage://c/{job}"])},
        optional={"interval_steps": st.integers(1, 99)},
    ),
    "array": st.sampled_from(["0-9", "1-9:2", "0-99%8", "3-30:3%2"]),
    "hold": st.booleans(),
    "stop_grace": st.sampled_from([0, 10, 2.5, "1m"]),
}
FILES = st.fixed_dictionaries(
    {"name": VALUES["name"], "command": VALUES["command"]},
    optional={k: v for k, v in VALUES.items() if k not in {"name", "command"}},
)


@given(FILES)
@settings(max_examples=150, deadline=None)
def test_any_file_can_be_written_in_the_canonical_form(said: dict[str, Any]):
    try:
        request = a_request(json.dumps(said), json=True)
    except SpecRejectedError as error:
        assert error.faults  # noqa: PT017 - a refusal is right as well
        return
    again = a_request(request.canonical())
    assert again.spec == request.spec


# -------------------------------------------------------------- nothing is dropped


def test_what_is_not_acted_on_is_refused_or_announced_by_name():
    request = a_request(EVERYTHING)
    told = {notice.field for notice in request.notices}
    refused = a_refusal(EVERYTHING)
    for name, field in said(values_of_everything(), PLAIN_FIELDS):
        if field.acts is Acts.ANNOUNCED:
            assert name in told
        if field.acts is Acts.REFUSED:
            assert f"`{name}` cannot be honoured by this installation yet" in refused


def a_refusal(text: str) -> str:
    with pytest.raises(SpecRejectedError) as caught:
        a_request(text, SITE)
    return str(caught.value)


def values_of_everything() -> dict[str, Any]:
    names: dict[str, Any] = {
        "container": {"image": ""},
        "work_directory": {"git": ""},
        "success": {"outputs": (), "metric": {}},
        "checkpoint": {"keep": {}, "verify": ""},
        "observe": {"metrics_interval": 1, "export_interval": 1, "health_interval": 1},
        "data": {"train": {"checksum": ""}, "scratch": {"manifest": ""}},
    }
    return {each.name: names.get(each.name, 1) for each in PLAIN_FIELDS}


@pytest.mark.parametrize("field", PLAIN_FIELDS, ids=lambda field: field.name)
def test_a_field_that_is_not_acted_on_says_what_happens_instead(field: Any):
    assert bool(field.meanwhile) is (field.acts is not Acts.NOW)


def test_a_folder_that_several_jobs_share_is_announced():
    text = "name: a\ncommand: b\noutput_directory: out\n"
    [notice] = a_request(text).notices
    assert notice.place == (3, 1)
    assert notice.message == (
        "`output_directory` has no `{job}`: the next job of this file writes there too"
    )


@pytest.mark.parametrize(
    ("command", "program"),
    [
        ("torchrun --nnodes 2 t.py", "torchrun"),
        ("/opt/bin/accelerate launch t.py", "accelerate"),
        ("python -m torch.distributed.run t.py", "torch.distributed.run"),
    ],
)
def test_a_command_that_starts_ranks_itself_is_started_once(command: str, program: str):
    request = a_request(f"name: a\ncommand: {command}\naccelerators_per_node: 8\n")
    assert (request.spec.launch, request.spec.ranks_per_node) == ("once_per_node", 1)
    [notice] = request.notices
    assert f"`{program}` starts the ranks itself" in notice.message
