"""Which processes are ours: a table of machines, no process is started."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from trainmaster.launcher.backends.model import Evidence, Identity
from trainmaster.launcher.backends.ownership import Marks, Snapshot, owned
from trainmaster.launcher.backends.proc import Stat

pytestmark = pytest.mark.unit

BOOT = "this-boot"


def identity(pid: int, ticks: int, boot_id: str = BOOT) -> Identity:
    return Identity(pid=pid, start_ticks=ticks, boot_id=boot_id)


def stat(pid: int, *, parent: int = 1, session: int = 0, ticks: int = 200) -> Stat:
    return Stat(
        pid=pid,
        command="x",
        state="S",
        parent=parent,
        group=pid,
        session=session or pid,
        flags=0,
        start_ticks=ticks,
    )


INIT = stat(1, parent=0, session=1, ticks=0)
SHIM = stat(100, ticks=100)
RANK = stat(101, parent=100, session=100, ticks=101)
MARKS = Marks(
    shims={identity(100, 100): 500},
    ranks=frozenset({identity(101, 101)}),
    tokens=frozenset({"ours"}),
)


def found(
    *stats: Stat, tokens: Mapping[int, str] | None = None, marks: Marks = MARKS
) -> Mapping[int, Evidence]:
    snapshot = Snapshot(boot_id=BOOT, stats=(INIT, *stats), tokens=tokens or {})
    return owned(snapshot, marks)


def test_shim_and_rank_are_known_by_their_identity():
    assert found(SHIM, RANK) == {100: Evidence.SHIM, 101: Evidence.RANK}


def test_the_same_pids_with_other_start_times_are_strangers():
    assert found(replace(SHIM, start_ticks=7), replace(RANK, start_ticks=7)) == {}


def test_the_same_pids_and_times_of_another_boot_are_strangers():
    marks = Marks(shims={identity(100, 100, "earlier"): 500}, tokens=MARKS.tokens)
    assert found(SHIM, RANK, marks=marks) == {}


def test_a_child_in_the_session_is_ours():
    assert found(SHIM, RANK, stat(102, session=100))[102] is Evidence.SESSION


def test_a_whole_line_of_descendants_in_other_sessions_is_ours():
    line = (stat(102, parent=101), stat(103, parent=102), stat(104, parent=103))
    assert set(found(SHIM, RANK, *line)) == {100, 101, 102, 103, 104}


def test_a_token_is_enough():
    assert found(stat(300), tokens={300: "ours"}) == {300: Evidence.TOKEN}


def test_another_attempts_token_is_nothing():
    assert found(stat(300), tokens={300: "theirs"}) == {}


def test_a_token_does_not_make_its_bearers_session_ours():
    """Somebody may run our environment in the terminal they look at it from."""
    debugger = stat(300, session=299)
    shell = stat(299, ticks=50)
    assert set(found(shell, debugger, tokens={300: "ours"})) == {300}


def test_members_of_a_session_led_by_a_bearer_of_the_token_are_ours():
    leader, member = stat(300), stat(301, session=300)
    assert found(leader, member, tokens={300: "ours"})[301] is Evidence.SESSION


def test_the_cgroup_is_enough():
    marks = replace(MARKS, cgroup_pids=frozenset({300}))
    assert found(stat(300), marks=marks) == {300: Evidence.CGROUP}


@pytest.mark.parametrize(
    ("ticks", "evidence"), [(500, Evidence.SESSION), (501, Evidence.DOUBTFUL)]
)
def test_without_its_shim_a_session_proves_only_who_was_there_before(
    ticks: int, evidence: Evidence
):
    assert found(stat(102, session=100, ticks=ticks)) == {102: evidence}


def test_a_number_that_leads_again_is_somebody_elses_session():
    recycled = stat(100, ticks=400)
    assert found(recycled, stat(102, session=100, ticks=450)) == {}


def test_the_dead_are_not_named_but_what_they_leave_is():
    zombie = replace(RANK, state="Z")
    child = stat(102, parent=101)
    assert set(found(SHIM, zombie, child)) == {100, 102}


def test_the_spared_and_what_descends_from_them_alone_are_never_named():
    marks = replace(MARKS, spared=frozenset({1, 300}))
    agent, child = stat(300), stat(301, parent=300)
    assert found(agent, child, tokens={300: "ours"}, marks=marks) == {}
