"""What is read from the kernel and written for the shim, word by word."""

import os
import signal
from pathlib import Path

import pytest

from trainmaster.core.errors import InvalidTokenError
from trainmaster.core.ids import JobId
from trainmaster.launcher.backends import cgroup, pidfd, proc
from trainmaster.launcher.backends.directory import Directory
from trainmaster.launcher.backends.model import (
    AttemptKey,
    Hindrance,
    JobUser,
    RankKey,
    RankSpec,
    SpawnFailed,
)
from trainmaster.launcher.backends.process import rank_request

pytestmark = pytest.mark.unit

KEY = RankKey(attempt=AttemptKey(job=JobId("01JOB"), number=2), rank=3)


def test_a_request_word_by_word():
    spec = RankSpec(
        key=KEY,
        argv=("python", "train.py"),
        environment={"PATH": "/bin", "RANK": "3"},
        work_directory=Path("/work"),
        log=Path("/out/logs/attempt-2/rank-3.log"),
        user=JobUser(uid=1000, gid=100, groups=(100, 44)),
    )
    request = rank_request(spec, token="secret")
    assert (request.key, request.token) == (KEY, "secret")
    assert request.document == {
        "argv": ["python", "train.py"],
        "env": {"PATH": "/bin", "RANK": "3", "TM_SHIM_TOKEN": "secret"},
        "cwd": "/work",
        "log": "/out/logs/attempt-2/rank-3.log",
        "uid": 1000,
        "gid": 100,
        "groups": [100, 44],
        "cgroup": None,
    }


def test_without_a_user_nothing_is_switched():
    spec = RankSpec(
        key=KEY, argv=("x",), environment={}, work_directory=Path("/"), log=Path("/l")
    )
    document = rank_request(spec, token="t").document
    assert [document[name] for name in ("uid", "gid", "groups")] == [None, None, None]


def test_a_command_may_hold_anything():
    line = "7 (a) R (b c) S 5 6 4 0 -1 4194304 " + " ".join(map(str, range(10, 40)))
    stat = proc.parse_stat(line)
    assert (stat.pid, stat.command, stat.state) == (7, "a) R (b c", "S")
    assert (stat.parent, stat.group, stat.session) == (5, 6, 4)
    assert stat.start_ticks == 22
    assert not stat.dead
    assert not stat.of_kernel


def test_this_process_is_what_the_kernel_says():
    stat = proc.read_stat(os.getpid())
    assert stat is not None
    assert (stat.parent, stat.group) == (os.getppid(), os.getpgid(0))
    assert os.getppid() in proc.ancestors(os.getpid())


def test_nobody_has_a_pid_beyond_the_last():
    assert proc.read_stat(1 << 30) is None
    assert proc.read_token(1 << 30) is None
    assert not proc.catches(1 << 30, signal.SIGTERM)


@pytest.mark.parametrize(
    ("number", "expected"),
    [(signal.SIGUSR1, True), (signal.SIGINT, True), (signal.SIGTERM, False)],
)
def test_caught_signals_are_bits_counted_from_one(
    number: signal.Signals, *, expected: bool
):
    status = "Name:\tsh\nSigIgn:\tffffffffffffffff\nSigCgt:\t0000000000000202\n"
    assert proc.caught(status, number) is expected


def test_a_token_is_a_whole_variable():
    assert proc.token_in(b"A=1\0TM_SHIM_TOKEN=abc\0B=2\0") == "abc"
    assert proc.token_in(b"XTM_SHIM_TOKEN=abc\0TM_SHIM_TOKENS=d\0") is None


def test_our_cgroup_is_below_the_mount_of_version_2():
    mounts = (
        "24 1 0:5 / /proc rw - proc proc rw\n"
        "30 24 0:26 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw\n"
    )
    assert cgroup.own_cgroup(mounts, "1:cpu:/x\n0::/system.slice/agent") == Path(
        "/sys/fs/cgroup/system.slice/agent"
    )
    assert cgroup.own_cgroup(mounts, "1:cpu:/x") is None
    assert cgroup.own_cgroup("24 1 0:5 / /proc rw - proc proc rw", "0::/") is None


def test_a_place_where_we_may_make_no_cgroup_is_named(tmp_path: Path):
    own = cgroup.make(tmp_path / "absent", KEY)
    assert own == cgroup.Without(
        reason=f"{tmp_path}/absent/tm-01JOB-a2: No such file or directory"
    )


def test_system_calls_do_what_python_does_where_it_can():
    child = os.posix_spawnp("sleep", ["sleep", "1000"], os.environ)
    handle = pidfd.open_by_call(child)
    pidfd.send_by_call(handle, signal.SIGKILL)
    os.close(handle)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    with pytest.raises(ProcessLookupError):
        pidfd.open_by_call(child)


def test_a_job_cannot_lead_out_of_the_directory(tmp_path: Path):
    directory = Directory(tmp_path)
    with pytest.raises(InvalidTokenError):
        directory.close(AttemptKey(job=JobId("../../etc"), number=1))


def test_records_cut_short_by_a_power_failure_count_as_absent(tmp_path: Path):
    rank = Directory(tmp_path).rank(KEY)
    rank.make()
    for name in ("request", "started", "failed", "exit"):
        (rank.path / f"{name}.json").write_text('{"pid": 1')
    assert (rank.request, rank.started, rank.failure, rank.exit) == (None,) * 4


@pytest.mark.parametrize("hindrance", list(Hindrance))
def test_every_hindrance_has_a_sentence_that_names_the_rank(hindrance: Hindrance):
    failed = SpawnFailed(key=KEY, hindrance=hindrance, step="user", what="7", errno=1)
    assert failed.message.startswith("rank 3 was not started: ")
    assert "{" not in failed.message
