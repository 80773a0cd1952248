"""Says which process is which, even after its pid was given to another one.

A pid alone names nothing: it is reused, at the latest after a reboot. Pid, start time
and boot id together name one process for ever.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")
GONE_STATES: Final = frozenset("ZXx")
"""A zombie runs nothing any more: only its parent has not asked yet."""
_AFTER_NAME_STATE, _AFTER_NAME_START = 0, 19


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """One process, for ever."""

    pid: int
    start_ticks: int
    boot_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stat:
    """What is needed of /proc/PID/stat."""

    state: str
    start_ticks: int


def parse_stat(text: str) -> Stat:
    """Read a stat line; the name in it may hold blanks and brackets."""
    fields = text.rpartition(")")[2].split()
    return Stat(
        state=fields[_AFTER_NAME_STATE], start_ticks=int(fields[_AFTER_NAME_START])
    )


def identify(pid: int) -> Identity | None:
    """Name the process that has this pid now, if it still runs."""
    try:
        stat = parse_stat((PROC / str(pid) / "stat").read_text(errors="replace"))
    except (FileNotFoundError, ProcessLookupError):
        return None
    if stat.state in GONE_STATES:
        return None
    return Identity(pid=pid, start_ticks=stat.start_ticks, boot_id=boot_id())


def boot_id() -> str:
    """Name this boot of the machine."""
    return (PROC / "sys/kernel/random/boot_id").read_text().strip()


def is_running(process: Identity) -> bool:
    """Tell whether this very process still runs."""
    return identify(process.pid) == process


def send(process: Identity, signal_number: int) -> bool:
    """Signal this very process; False when it is gone already."""
    if not is_running(process):
        return False
    try:
        os.kill(process.pid, signal_number)
    except ProcessLookupError:
        return False
    return True


def working_in(directory: Path, *, program: str) -> tuple[Identity, ...]:
    """Find every process of a program whose working directory this is."""
    wanted = str(directory.resolve())
    found = (
        identify(int(entry.name))
        for entry in PROC.iterdir()
        if entry.name.isdecimal()
        and _link(entry / "cwd") == wanted
        and Path(_link(entry / "exe")).name.startswith(program)
    )
    return tuple(process for process in found if process is not None)


def _link(path: Path) -> str:
    """Follow a link of /proc; the empty string when it is gone or not ours to read."""
    try:
        return str(path.readlink())
    except OSError:
        return ""
