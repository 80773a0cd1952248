"""What is executed."""

import shlex
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.jobfile.command import argv

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("python train.py", ("python", "train.py")),
        ("python  -m x --name 'a b'\n", ("python", "-m", "x", "--name", "a b")),
        ('torchrun --arg "x y" t.py', ("torchrun", "--arg", "x y", "t.py")),
        ("python train.py --lr=1e-3", ("python", "train.py", "--lr=1e-3")),
    ],
)
def test_a_simple_command_is_executed_directly(line: str, words: tuple[str, ...]):
    assert argv(line) == words


@pytest.mark.parametrize(
    "line",
    [
        "python train.py > log",
        "cd src && python train.py",
        "cd src",
        "echo $HOME",
        "ls *.py",
        "LR=1 python train.py",
        "a; b",
        "a\nb",
        "ls ~/x",
        "echo `date`",
        "exec python train.py",
        "python train.py # quick",
    ],
)
def test_what_only_a_shell_understands_goes_to_a_shell(line: str):
    assert argv(f"{line}\n") == ("/bin/sh", "-c", line)


def test_an_open_quote_cannot_be_split():
    with pytest.raises(ValueError, match="closing quotation"):
        argv("python 'train.py")


@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0")), max_size=4)
)
def test_quoted_arguments_arrive_whole(arguments: list[str]):
    line = shlex.join(["printf", r"%s\0", *arguments])
    run = argv(line)
    if run[0] == "/bin/sh":
        assert run[2] == line.strip()
    else:
        assert run == ("printf", r"%s\0", *arguments)


def test_directly_and_by_shell_mean_the_same():
    line = """printf '%s|' "a b" 'c  d' e"""
    direct = subprocess.run(argv(line), capture_output=True, check=True)
    by_shell = subprocess.run(["/bin/sh", "-c", line], capture_output=True, check=True)
    assert direct.stdout == by_shell.stdout == b"a b|c  d|e|"
