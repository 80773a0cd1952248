"""What is kept about the embedded servers, and which process is which."""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from trainmaster.runtime.embedded.account import (
    MAKERS,
    OWN_NAME,
    Account,
    choose_account,
)
from trainmaster.runtime.embedded.errors import ServerPlaceError
from trainmaster.runtime.embedded.files import (
    Lock,
    kept_password,
    private_directory,
    read_kept,
    read_pid,
    write_pid,
    write_private,
)
from trainmaster.runtime.embedded.log import TURN_OVER_BYTES, ServerLog
from trainmaster.runtime.embedded.ports import quiet_range
from trainmaster.runtime.embedded.process import (
    Identity,
    Stat,
    identify,
    is_running,
    parse_stat,
    send,
    working_in,
)

pytestmark = pytest.mark.unit

STAT = "77 (a) b (c) S 1 77 77 0 -1 4 5 0 0 0 1 2 0 0 20 0 1 0 987654 1000 9"


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def ourselves() -> Identity:
    identity = identify(os.getpid())
    assert identity is not None
    return identity


def wait_for_a_line(child: "subprocess.Popen[str]") -> str:
    """A child that has written a line runs its own program."""
    assert child.stdout is not None
    return child.stdout.readline()


# ------------------------------------------------------------------- processes


def test_a_process_name_may_hold_blanks_and_brackets():
    assert parse_stat(STAT) == Stat(state="S", start_ticks=987654)


def test_a_process_knows_itself():
    assert is_running(ourselves())


@pytest.mark.parametrize("field", ["start_ticks", "boot_id"])
def test_a_recycled_pid_is_another_process(field: str):
    earlier = replace(ourselves(), **{field: 1 if field == "start_ticks" else "old"})
    assert not is_running(earlier)
    assert not send(earlier, 9)


def test_a_zombie_runs_no_more():
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert identify(child.pid) is None
    child.wait()


def test_processes_are_found_by_where_they_work_and_what_they_run(tmp_path: Path):
    program = Path(sys.executable).resolve().name
    script = "print('up', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert wait_for_a_line(child) == "up\n"
        found = [process.pid for process in working_in(tmp_path, program=program)]
        others = working_in(tmp_path, program="postgres")
        child.communicate("\n")
    assert found == [child.pid]
    assert others == ()


# ----------------------------------------------------------------------- files


def test_a_password_is_drawn_once_and_is_private(tmp_path: Path):
    file = tmp_path / "credentials" / "scheduler"
    first = kept_password(file)
    assert kept_password(file) == first
    assert len(first) >= 32
    assert (mode(file), mode(file.parent)) == (0o600, 0o700)
    assert kept_password(tmp_path / "credentials" / "reaper") != first


def test_a_private_file_is_private_whatever_it_was(tmp_path: Path):
    file = tmp_path / "nats.conf"
    file.write_text("old")
    file.chmod(0o644)
    write_private(file, "new")
    assert (file.read_text(), mode(file)) == ("new", 0o600)
    assert list(tmp_path.iterdir()) == [file]


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(ServerPlaceError, match=f"{tmp_path}/file"):
        private_directory(tmp_path / "file" / "nats")


def test_a_pid_file_brings_back_the_process(tmp_path: Path):
    write_pid(tmp_path / "pid", ourselves())
    assert read_pid(tmp_path / "pid") == ourselves()


@pytest.mark.parametrize("content", ["", "4711\n", "[]", '{"pid": 1}', "{"])
def test_a_damaged_pid_file_names_nobody(tmp_path: Path, content: str):
    (tmp_path / "pid").write_text(content)
    assert read_pid(tmp_path / "pid") is None


def test_a_fact_never_kept_is_none(tmp_path: Path):
    assert read_kept(tmp_path / "port") is None


def test_a_lock_lasts_as_long_as_the_child_that_inherited_it(tmp_path: Path):
    file = tmp_path / "lock"
    with (lock := Lock.attempt(file)) or pytest.fail("the lock is new"):
        child = subprocess.Popen(
            [sys.executable, "-c", "input()"],
            stdin=subprocess.PIPE,
            pass_fds=(lock.descriptor,),
        )
    assert Lock.attempt(file) is None
    child.communicate(b"\n")
    with Lock.attempt(file) or pytest.fail("the child is gone, and so is its lock"):
        assert Lock.attempt(file) is None


def test_a_log_is_quoted_from_where_it_was(tmp_path: Path):
    log = ServerLog(tmp_path / "log")
    assert (log.size(), log.said(since=0)) == (0, ())
    log.path.write_text("old\n")
    since = log.size()
    with log.appending() as descriptor:
        os.write(descriptor, b"new\n")
    assert log.said(since=since) == ("new",)
    assert log.said(since=10_000) == ("old", "new")  # it was turned over since


def test_a_large_log_is_turned_over_before_the_next_start(tmp_path: Path):
    log = ServerLog(tmp_path / "log")
    log.path.write_bytes(b"x" * (TURN_OVER_BYTES + 1))
    with log.appending():
        assert log.size() == 0
    assert (tmp_path / "log.1").stat().st_size == TURN_OVER_BYTES + 1


# ----------------------------------------------------------------------- ports


@pytest.mark.parametrize(
    ("ephemeral", "quiet"),
    [
        ((32_768, 60_999), range(20_000, 32_768)),
        ((15_000, 61_000), range(61_001, 65_536)),
        ((1_024, 65_535), range(20_000, 65_536)),
    ],
)
def test_ports_come_from_where_no_outgoing_connection_is(
    ephemeral: tuple[int, int], quiet: range
):
    assert quiet_range(ephemeral) == quiet


# -------------------------------------------------------------------- accounts


class Machine:
    """The accounts of a made-up machine, and the tools that make them."""

    def __init__(self, *names: str, maker: str = "") -> None:
        self.names = set(names)
        self.maker = maker
        self.asked: list[str] = []

    def find(self, name: str) -> Account | None:
        return Account(name=name, uid=1, gid=1) if name in self.names else None

    def make(self, command: Sequence[str]) -> None:
        self.asked.append(command[0])
        if command[0] == self.maker:
            self.names.add(command[-1])


def test_an_account_is_made_once():
    machine = Machine("nobody", maker="useradd")
    for _ in range(2):
        assert choose_account(machine.find, machine.make).name == OWN_NAME
    assert machine.asked == ["useradd"]


def test_a_machine_with_busybox_has_its_account_as_well():
    machine = Machine("nobody", maker="adduser")
    assert choose_account(machine.find, machine.make).name == OWN_NAME


def test_a_shared_account_is_the_last_resort():
    machine = Machine("nobody")
    assert choose_account(machine.find, machine.make).name == "nobody"
    assert machine.asked == [maker[0] for maker in MAKERS]


def test_a_machine_with_root_alone_is_told_what_to_make():
    machine = Machine()
    with pytest.raises(ServerPlaceError, match=OWN_NAME):
        choose_account(machine.find, machine.make)
