"""What the kernel says about processes: who they are, whose, and whether they live.

Signals and waits go through handles on a verified identity: a pid that was given to
somebody else in the meantime is never touched.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from trainmaster.launcher.backends.model import TOKEN_VARIABLE, Identity
from trainmaster.launcher.backends.pidfd import pidfd_open

PROC: Final = Path("/proc")
_KERNEL_THREAD: Final = 0x00200000
_DEAD: Final = frozenset("ZXx")
_TOKEN_PREFIX: Final = f"{TOKEN_VARIABLE}=".encode()
_GONE: Final = (FileNotFoundError, ProcessLookupError)
_HIDDEN: Final = (*_GONE, PermissionError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stat:
    """One line of `/proc/PID/stat`, as far as it is needed."""

    pid: int
    command: str
    state: str
    parent: int
    group: int
    session: int
    flags: int
    start_ticks: int

    @property
    def of_kernel(self) -> bool:
        """A thread of the kernel is a process by name only."""
        return bool(self.flags & _KERNEL_THREAD)

    @property
    def dead(self) -> bool:
        """A zombie runs no more; only its parent has not looked yet."""
        return self.state in _DEAD


def parse_stat(text: str) -> Stat:
    """Read the line; the command stands in parentheses and may hold anything."""
    before, _, after = text.rpartition(")")
    pid, _, command = before.partition(" (")
    fields = after.split()
    return Stat(
        pid=int(pid),
        command=command,
        state=fields[0],
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        flags=int(fields[6]),
        start_ticks=int(fields[19]),
    )


def read_stat(pid: int) -> Stat | None:
    """Look at one process; None if there is none."""
    try:
        text = (PROC / str(pid) / "stat").read_text(errors="replace")
    except _GONE:
        return None
    return parse_stat(text)


def all_stats() -> Iterator[Stat]:
    """Look at every process of this machine once."""
    for name in os.listdir(PROC):  # noqa: PTH208 - names are enough, and many
        stat = read_stat(int(name)) if name.isdecimal() else None
        if stat is not None:
            yield stat


def token_in(environ: bytes) -> str | None:
    """Find the token in a block of NUL-separated variables."""
    for variable in environ.split(b"\0"):
        if variable.startswith(_TOKEN_PREFIX):
            return os.fsdecode(variable.removeprefix(_TOKEN_PREFIX))
    return None


def read_token(pid: int) -> str | None:
    """Read the token a process was executed with; None if none can be seen."""
    try:
        environ = (PROC / str(pid) / "environ").read_bytes()
    except _HIDDEN:
        return None
    return token_in(environ)


def caught(status: str, number: int) -> bool:
    """Whether `/proc/PID/status` says that a handler is set for a signal."""
    for line in status.splitlines():
        if line.startswith("SigCgt:"):
            return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def catches(pid: int, number: int) -> bool:
    """Whether a process has a handler for a signal; gone ones have none."""
    try:
        status = (PROC / str(pid) / "status").read_text(errors="replace")
    except _GONE:
        return False
    return caught(status, number)


def boot_id() -> str:
    """Name this boot of the kernel; pids and start times mean nothing in another."""
    return (PROC / "sys/kernel/random/boot_id").read_text().strip()


def ticks_per_second() -> int:
    """Return the unit of start times."""
    return os.sysconf("SC_CLK_TCK")


def ancestors(pid: int) -> frozenset[int]:
    """Name a process and all it descends from."""
    line: set[int] = set()
    while pid and pid not in line:
        line.add(pid)
        stat = read_stat(pid)
        pid = stat.parent if stat else 0
    return frozenset(line)


def is_alive(identity: Identity) -> bool:
    """Whether exactly this process runs."""
    stat = read_stat(identity.pid) if identity.boot_id == boot_id() else None
    return stat is not None and _is(identity, stat)


def open_pidfd(identity: Identity) -> int | None:
    """Take hold of exactly this process; None if it runs no more.

    The handle is taken first and the identity compared after it: what is compared is
    what is held.
    """
    if identity.boot_id != boot_id():
        return None
    try:
        pidfd = pidfd_open(identity.pid)
    except ProcessLookupError:
        return None
    stat = read_stat(identity.pid)
    if stat is not None and _is(identity, stat):
        return pidfd
    os.close(pidfd)
    return None


def _is(identity: Identity, stat: Stat) -> bool:
    return stat.start_ticks == identity.start_ticks and not stat.dead
