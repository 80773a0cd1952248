"""What is around a file: overlays, templates, stores, limits, the published schema."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.unit.jobfile.everything import EVERYTHING, SITE

from trainmaster.core.errors import SpecRejectedError
from trainmaster.jobfile.credentials import has_secret, looks_secret
from trainmaster.jobfile.limits import FAULTS_MAX, TEXT_BYTES_MAX
from trainmaster.jobfile.published import json_schema
from trainmaster.jobfile.reading import Source, read
from trainmaster.jobfile.request import JobRequest
from trainmaster.jobfile.writing import size_text

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[3]
OVERLAID = """\
name: lm
command: python train.py
nodes: 4
env: {A: file, B: file}
overlays:
  dev: {nodes: 1, env: {A: dev}, script: make}
  prod: {priority: high}
"""


def a_request(text: str, **changes: Any) -> JobRequest:
    return read(Source(text=text, name="a.yaml", directory="/d", **changes), SITE)


def said_of(text: str, **changes: Any) -> str:
    with pytest.raises(SpecRejectedError) as caught:
        a_request(text, **changes)
    return str(caught.value)


# ---------------------------------------------------------------- overlay, template


def test_the_chosen_overlay_wins_over_the_file():
    plain, dev = a_request(OVERLAID).spec, a_request(OVERLAID, overlay="dev").spec
    assert (plain.nodes, plain.overlay) == (4, "")
    assert (dev.nodes, dev.overlay) == (1, "dev")
    assert dev.env == {"A": "dev", "B": "file"}
    assert dev.command == ("/bin/sh", "-e", "-c", "make")


def test_an_overlay_that_is_not_there_is_told_with_those_that_are():
    said = said_of(OVERLAID, overlay="test")
    assert said.startswith(
        "a.yaml:5:1 no overlay is called `test` (known: `dev`, `prod`)"
    )


def test_a_fault_in_an_overlay_is_found_whether_it_is_chosen_or_not():
    assert "a.yaml:3:18 unknown field `overlays.dev.noeds`" in said_of(
        "name: a\ncommand: b\noverlays: {dev: {noeds: 1}}\n"
    )


def test_a_fault_in_a_template_is_told_of_the_template():
    said = said_of("name: a\n", template="comand: b\n", template_name="tuned")
    assert said.startswith("tuned:1:1 unknown field `comand`")


# --------------------------------------------------------------------------- bounds


def test_a_file_that_is_too_large_is_refused_before_it_is_read():
    text = "name: a\ncommand: b\n# " + "x" * TEXT_BYTES_MAX
    assert f"a job file has at most {TEXT_BYTES_MAX:,}" in said_of(text)


def test_so_many_faults_are_told_and_no_more():
    text = "name: a\ncommand: b\n" + "".join(f"f{i}: 1\n" for i in range(300))
    lines = said_of(text).splitlines()
    assert len(lines) == FAULTS_MAX + 2
    assert "these are 100 faults; mend them to see the rest" in lines[-2]


def test_without_stores_a_storage_address_is_refused():
    source = Source(text="name: a\ncommand: b\ndata: {x: storage://s/x}", directory="/")
    with pytest.raises(SpecRejectedError, match="this installation has no stores"):
        read(source)


@pytest.mark.parametrize(
    "path", ["storage://", "storage:///x", "storage://s/../x", "storage://s?x=1"]
)
def test_a_storage_address_cannot_leave_its_store(path: str):
    said = said_of(f"name: a\ncommand: b\ndata: {{x: '{path}'}}")
    assert "`data.x` must be `storage://STORE/path`" in said


# -------------------------------------------------------------------------- secrets


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("API_TOKEN", "abc"),
        ("wandb_api_key", "x"),
        ("dbPassword", "12345"),
        ("AWS_SECRET_ACCESS_KEY", "/abc"),
        ("PLAIN", "ghp_" + "a1" * 18),
        ("URL", "https://ada:pw@git.example/x"),
        ("KEYFILE", "-----BEGIN RSA PRIVATE KEY-----"),
    ],
)
def test_a_secret_is_known_by_its_name_or_its_form(name: str, value: str):
    assert looks_secret(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("API_TOKEN", ""),
        ("API_TOKEN", "secret://vault/x"),
        ("MAX_TOKENS", "4096"),
        ("TOKENIZER", "bpe"),
        ("TOKENIZERS_PARALLELISM", "false"),
        ("PAD_TOKEN", "x"),
        ("SORT_KEY", "name"),
        ("URL", "https://git.example/x"),
    ],
)
def test_what_only_sounds_alike_is_no_secret(name: str, value: str):
    assert not looks_secret(name, value)


@pytest.mark.parametrize(
    ("line", "has"),
    [
        ("train --api-key abc", True),
        ("train --api-key=abc", True),
        ("API_TOKEN=abc train", True),
        ("train --api-key $KEY", False),
        ("train --max-tokens 5 --token-file /x", False),
        ("python train.py --tokenizer bpe", False),
    ],
)
def test_a_secret_in_a_command_is_seen(*, line: str, has: bool):
    assert has_secret(line) is has


# ------------------------------------------------------------------------ published


def test_the_reference_and_the_schema_are_up_to_date():
    command = [sys.executable, "-m", "tools.generate_jobfile", "--check"]
    result = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr


def test_the_schema_takes_what_is_taken():
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    yaml = pytest.importorskip("yaml")
    validator = jsonschema.Draft202012Validator(json_schema())
    samples = sorted((ROOT / "examples").rglob("*.yaml"))
    assert len(samples) >= 4
    for text in (EVERYTHING, *(path.read_text() for path in samples)):
        found: Any = yaml.load(text, yaml.BaseLoader)
        typed = json.loads(json.dumps(found), parse_float=str)
        names = {e.validator for e in validator.iter_errors(typed)}
        assert not names & {"additionalProperties", "required"}


@pytest.mark.parametrize(
    ("size", "text"),
    [(2**39, "512Gi"), (256 * 10**9, "256G"), (3 * 2**39, "1536Gi"), (1001, "1001")],
)
def test_a_size_is_written_shortly(size: int, text: str):
    assert size_text(size) == text
