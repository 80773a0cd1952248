"""What is said about a wrong job file: every fault, its place, the right name."""

import pytest

from trainmaster.core.errors import SpecRejectedError
from trainmaster.jobfile.limits import DEPTH_MAX, TEXT_BYTES_MAX, VALUES_MAX
from trainmaster.jobfile.reading import Source, read

pytestmark = pytest.mark.unit

SMALLEST = "name: lm\ncommand: python train.py\n"
WRONG = """\
name: 12
command: [python, 3, null]
acelerators_per_node: 2
gpus: 4
hold: yes
nodes: "2"
nodes: 3
memory_per_node: 512 GB
time_limit: 30 minutes
env: {RANK: 1, TM_X: 2, a-b: 1, OK: }
checkpoint: {dir: x, resume_from: ~/a}
launch: per_node
priority: hihg
output_directory: runs/{name}
success: {step: 0}
retries: .nan
labels: [a]
pool: a b
cpus_per_node: 010
ranks_per_node: 2000
"""
SAID = """\
train.yaml:1:1 `name` must be text; write it in quotes: "12"
train.yaml:2:22 `command[2]` has no value; give one or remove the line
train.yaml:3:1 unknown field `acelerators_per_node`. Did you mean \
`accelerators_per_node`?
train.yaml:4:1 unknown field `gpus`. Did you mean `accelerators_per_node`?
train.yaml:5:1 `hold` must be `true` or `false`, not `yes`. Did you mean `true`?
train.yaml:6:1 `nodes` must be a whole number, not `"2"`; remove the quotes
train.yaml:7:1 `nodes` is given twice (first in line 6)
train.yaml:8:1 `memory_per_node` must be a size such as `512Gi`, `1.5Ti` or `64G`, \
not `512 GB`. Did you mean `512G`?
train.yaml:9:1 `time_limit` must be a duration such as `1800`, `30m` or `1h30m`, \
not `30 minutes`. Did you mean `30m`?
train.yaml:10:7 `env.RANK` is reserved: the launcher sets it for every rank; remove it
train.yaml:10:16 `env.TM_X` is reserved: the launcher sets it for every rank; remove it
train.yaml:10:25 `env.a-b` must be named with letters, digits and `_`
train.yaml:10:33 `env.OK` has no value; give one or remove the line
train.yaml:11:14 unknown field `checkpoint.dir`. Did you mean `checkpoint.directory`?
train.yaml:11:22 `checkpoint.resume_from` is not expanded: `~/a`; write the path out
train.yaml:12:1 `launch` must be one of `per_rank`, `once_per_node`, not `per_node`. \
Did you mean `once_per_node`?
train.yaml:13:1 `priority` must be one of `low`, `normal`, `high`, `critical`, \
not `hihg`. Did you mean `high`?
train.yaml:14:1 `output_directory` has `{name}`; only `{job}` is filled in
train.yaml:15:11 `success.step` must be from 1 to 2,147,483,647, not 0
train.yaml:16:1 `retries` must be a whole number, not `.nan`
train.yaml:17:1 `labels` must be a group of `name: value`
train.yaml:18:1 `pool` must be 1 to 64 letters, digits, `_` or `-`, not `a b`
train.yaml:19:1 `cpus_per_node` must be a whole number, not `010`; some read a leading \
zero as octal, write `10`
train.yaml:20:1 `ranks_per_node` must be from 1 to 1,024, not 2,000
Nothing was submitted."""


TOGETHER = """\
train.yaml:3:11 `success.step` needs `checkpoint.directory`: a verified checkpoint \
proves the step
train.yaml:3:20 `success.checkpoint` needs `checkpoint.directory`: without it no \
checkpoint is looked for
train.yaml:4:1 `total_limit` must not be shorter than `time_limit`, the limit of one \
attempt
train.yaml:7:1 `ranks_per_node` must be 1 with `launch: once_per_node`: the command \
starts the others
train.yaml:8:14 `checkpoint.resume_from` needs `checkpoint.directory`, where the job \
then saves
Nothing was submitted."""


def said_of(text: str, *, json: bool = False, job_name: str = "") -> str:
    source = Source(
        text=text,
        name="train.yaml",
        directory="/home/ada/lm",
        json=json,
        job_name=job_name,
    )
    with pytest.raises(SpecRejectedError) as caught:
        read(source)
    assert all(f.line and f.column for f in caught.value.faults)
    return str(caught.value)


def test_every_fault_is_told_at_once_in_the_order_of_the_file():
    assert said_of(WRONG) == SAID


def test_what_does_not_go_together_is_told_at_the_field_to_blame():
    text = (
        f"{SMALLEST}success: {{step: 3, checkpoint: true}}\ntotal_limit: 3\n"
        "time_limit: 1h\nlaunch: once_per_node\nranks_per_node: 2\n"
        "checkpoint: {resume_from: a}\n"
    )
    assert said_of(text) == TOGETHER


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "1:1 is empty; the smallest job file has a `name` and a `command`"),
        ("# only words\n", "1:1 is empty"),
        ("python train.py", "1:1 a job file is a group of `field: value`, not a word"),
        ("- a", "1:1 a job file is a group of `field: value`, not a list"),
        ("name: lm\n", "1:1 `command` is missing"),
        ("name: lm\ncomand: x", "2:1 unknown field `comand`. Did you mean `command`?"),
        ("name: lm\ncommand:\n", "2:1 `command` has no value"),
        ("name: lm\ncommand: ' '", "2:1 `command` is empty"),
        ("name: lm\ncommand: []", "2:1 `command` must begin with a program"),
        ("name: lm\ncommand: {a: b}", "2:1 `command` must be text, not a group"),
        ("name: lm\ncommand: 'a \"b'", "2:1 `command` cannot be split: no closing"),
        (f"{SMALLEST}env:\n\tA: b\n", "4:1 has a tab where YAML wants spaces"),
        (f"{SMALLEST}nodes: &n 2\n", "3:8 anchors and aliases are not read here"),
        (f"{SMALLEST}env: *n\n", "3:6 anchors and aliases are not read here"),
        (f"{SMALLEST}<<: {{nodes: 2}}\n", "3:1 merge keys are not read here"),
        (f"{SMALLEST}nodes: !!int 2\n", "3:8 tags such as `tag:yaml.org,2002:int`"),
        (f"{SMALLEST}---\nname: b\n", "3:1 has a second document"),
        (f"{SMALLEST}nodes: [1, 2\n", "3:8 has a `[` that is not closed"),
        (f"{SMALLEST}nodes: NaN", "3:1 `nodes` must be a whole number, not `NaN`"),
        (f"{SMALLEST}nodes: 99999999999999999999", "3:1 `nodes` must be a whole"),
        (f"{SMALLEST}time_limit: .inf", "3:1 `time_limit` must be a duration"),
        (f"{SMALLEST}time_limit: 0", "3:1 `time_limit` must be more than zero"),
        (f"{SMALLEST}time_limit: 99999999d", "more than zero and at most ten years"),
        (f"{SMALLEST}memory_per_node: 512", "not 512 bytes. Did you mean `512Gi`?"),
        (f"{SMALLEST}work_directory: $HOME/x", "`work_directory` is not expanded"),
        (
            f"{SMALLEST}work_directory: a/{{job}}",
            "`work_directory` cannot have `{job}`",
        ),
        (f"{SMALLEST}env: {{PET_X: 1}}", "3:7 `env.PET_X` is reserved"),
        (f"{SMALLEST}resume_from: x", "Did you mean `checkpoint.resume_from`?"),
        (f"{SMALLEST}success: {{chekpoint: true}}", "`success.checkpoint`?"),
        (f'{SMALLEST}project: "a\\0b"', "3:10 contains a character that no text"),
        (f"{SMALLEST}project: \x01", "3:10 contains the unusable character"),
        ("name: a/b\ncommand: x", "1:1 `name` must be 1 to 100 printable characters"),
    ],
)
def test_a_wrong_file_is_told_where_and_why(text: str, said: str):
    assert said in said_of(text)


def test_a_misspelt_field_is_not_called_missing_as_well():
    assert "missing" not in said_of("name: lm\ncomand: x")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"name": "lm",\n "comand": "x"}', "2:2 unknown field `comand`"),
        ('{"name": "lm",\n "nodes": NaN, "command": "x"}', "2:2 `nodes` must be"),
        ('{"name": "lm", "name": "x", "command": "x"}', "`name` is given twice"),
        ('{"name": "lm",\n}', "2:1 is not JSON: "),
        ("[" * 60_000, "1:1 is nested deeper than 8 levels"),
        ("", "1:1 is not JSON"),
    ],
)
def test_json_has_places_too(text: str, said: str):
    assert said in said_of(text, json=True)


def test_a_name_from_outside_is_checked_as_well():
    assert "`name` must be 1 to 100" in said_of(SMALLEST, job_name="a/b")


def test_a_deep_file_stops_being_read():
    deep = "".join(f"{' ' * i}a:\n" for i in range(200))
    assert f"is nested deeper than {DEPTH_MAX} levels" in said_of(deep)
    assert f"is nested deeper than {DEPTH_MAX} levels" in said_of("[" * 60_000)


def test_a_file_with_too_many_values_stops_being_read():
    items = "".join(f"  K{i}: 1\n" for i in range(VALUES_MAX))
    assert len(items) < TEXT_BYTES_MAX
    assert f"has more than {VALUES_MAX} values" in said_of(f"{SMALLEST}env:\n{items}")
