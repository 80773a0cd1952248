"""What a rank is given and what not: user, environment, files, signals, cgroup."""

import errno
import os
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from tests.backends.conftest import ATTEMPT, RANK, Node

from trainmaster.launcher.backends import cgroup
from trainmaster.launcher.backends.model import (
    Hindrance,
    JobUser,
    Spawned,
    SpawnFailed,
)
from trainmaster.launcher.backends.process import ProcessBackend

# the conformance suite runs on every loop, this on one
pytestmark = [pytest.mark.unit, pytest.mark.asyncio(loop_factories=["asyncio"])]

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root changes its user")
NOBODY: Final = JobUser(uid=65534, gid=65534, groups=(65533,))


async def test_a_rank_gets_its_environment_its_files_and_nothing_else(node: Node):
    await node.shell("env; ls /proc/self/fd; grep -E 'SigBlk|SigIgn' /proc/self/status")
    assert (await node.backend.wait(RANK)).code == 0
    lines = node.log().read_text().splitlines()
    names = {line.partition("=")[0] for line in lines if "=" in line}
    assert names == {"PATH", "OUT", "TM_SHIM_TOKEN", "PWD"}  # the shell adds PWD
    assert [line for line in lines if line.isdecimal()] == ["0", "1", "2", "3"]
    masks = [int(line.split()[1], 16) for line in lines if line.startswith("Sig")]
    of_the_c_library = 0b11 << 31
    assert [mask & ~of_the_c_library for mask in masks] == [0, 0]


async def test_requests_and_output_are_for_the_owner_only(node: Node):
    await node.shell("exit 0")
    private = [node.directory() / "request.json", node.log()]
    assert [path.stat().st_mode & 0o777 for path in private] == [0o600, 0o600]
    assert node.root.stat().st_mode & 0o777 == 0o700


async def test_a_missing_interpreter_is_told_from_a_missing_program(node: Node):
    script = node.output / "train"
    script.write_text("#!/no/such/python\n")
    script.chmod(0o755)
    outcome = await node.spawn(str(script))
    assert isinstance(outcome, SpawnFailed)
    assert "exists, but not the program its first line names" in outcome.message


async def test_a_missing_work_directory_is_named(node: Node):
    spec = replace(node.spec("true"), work_directory=node.output / "absent")
    outcome = await node.backend.spawn(node.request(spec))
    assert isinstance(outcome, SpawnFailed)
    assert (outcome.step, outcome.errno) == ("work directory", errno.ENOENT)
    assert "absent" in outcome.message


async def test_a_shim_that_cannot_start_says_why(node: Node):
    broken = ProcessBackend(root=node.root, python="/bin/false")
    outcome = await broken.spawn(node.request(node.spec("true")))
    assert isinstance(outcome, SpawnFailed)
    assert outcome.hindrance is Hindrance.SHIM_DIED
    assert isinstance(await node.spawn("true"), Spawned), "it may be tried again"
    broken.release()


async def test_a_start_says_whether_the_rank_has_a_cgroup(node: Node):
    with_one = await node.run("true")
    node.restart(cgroups=False)
    other = replace(RANK, rank=1)
    without = await node.run("true", key=other)
    assert without.facts["cgroup"].startswith("none: ")
    assert with_one.facts["cgroup"].startswith(("/sys/fs/cgroup", "none: "))
    await node.backend.sweep(ATTEMPT)
    assert with_one.facts["cgroup"] not in cgroups_left()


@AS_ROOT
async def test_a_rank_runs_as_the_jobs_user(node: Node, tmp_path: Path):
    open_to_all(tmp_path)
    outcome = await node.spawn("id", user=NOBODY)
    assert isinstance(outcome, Spawned), outcome.message
    assert (await node.backend.wait(RANK)).code == 0
    said = node.log().read_text()
    assert "uid=65534" in said
    assert said.rstrip().endswith("groups=65534(nogroup),65533")
    assert node.log().stat().st_uid == NOBODY.uid


@AS_ROOT
async def test_the_jobs_user_cannot_make_us_write_for_root(node: Node, tmp_path: Path):
    open_to_all(tmp_path)
    precious = tmp_path / "precious"
    precious.write_text("of root")
    precious.chmod(0o600)
    node.log().parent.mkdir(parents=True)
    node.log().symlink_to(precious)
    outcome = await node.spawn("echo", "overwritten", user=NOBODY)
    assert isinstance(outcome, SpawnFailed)
    assert (outcome.step, outcome.errno) == ("output file", errno.EACCES)
    assert precious.read_text() == "of root"


def cgroups_left() -> set[str]:
    parent = cgroup.find_parent()
    return {str(path) for path in parent.glob("tm-*/*")} if parent else set()


def open_to_all(path: Path) -> None:
    """Let every user reach a test's output, below directories pytest keeps private."""
    (path / "output").chmod(0o777)
    for each in (path, *path.parents[:2]):
        each.chmod(each.stat().st_mode | 0o011)
