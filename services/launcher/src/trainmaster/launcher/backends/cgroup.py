"""A cgroup for each rank, where this process may make one.

Without, nothing is missing but the count of out-of-memory kills and one of four ways to
find processes. Only cgroups made here are ever killed or removed, which are
`tm-JOB-aATTEMPT/rank-RANK` below the cgroup this process is in.
"""

import contextlib
from dataclasses import dataclass
from pathlib import Path

from trainmaster.launcher.backends.model import RankKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A cgroup of the rank's own."""

    path: Path

    @property
    def fact(self) -> str:
        """What is told about it."""
        return str(self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Without:
    """No cgroup, and why not."""

    reason: str

    @property
    def fact(self) -> str:
        """What is told about it."""
        return f"none: {self.reason}"


def own_cgroup(mounts: str, membership: str) -> Path | None:
    """Find the version 2 cgroup of this process in mountinfo and its cgroup file."""
    points = [line.split()[4] for line in mounts.splitlines() if " - cgroup2 " in line]
    paths = [
        line.removeprefix("0::")
        for line in membership.splitlines()
        if line.startswith("0::")
    ]
    return Path(points[0] + paths[0]) if points and paths else None


def find_parent() -> Path | None:
    """Say where cgroups of ranks would go on this machine."""
    here = Path("/proc/self")
    return own_cgroup(
        (here / "mountinfo").read_text(), (here / "cgroup").read_text().rstrip()
    )


def make(parent: Path | None, key: RankKey) -> Made | Without:
    """Make a rank's cgroup, with memory counted if the parent hands that down."""
    if parent is None:
        return Without(reason="no cgroup version 2 here, or not wanted")
    attempt = parent / f"tm-{key.attempt.job}-a{key.attempt.number}"
    path = attempt / f"rank-{key.rank}"
    try:
        attempt.mkdir(exist_ok=True)
        if "memory" in (attempt / "cgroup.controllers").read_text().split():
            (attempt / "cgroup.subtree_control").write_text("+memory")
        path.mkdir(exist_ok=True)
    except OSError as error:
        return Without(reason=f"{error.filename}: {error.strerror}")
    return Made(path=path)


def members(path: Path) -> frozenset[int]:
    """Name the processes in a cgroup and in those below it."""
    lists = (_lines(file) for file in path.rglob("cgroup.procs"))
    return frozenset(int(line) for lines in lists for line in lines)


def kill(path: Path) -> None:
    """Kill all of a cgroup at once, where the kernel can; nothing relies on it."""
    if (path / "cgroup.kill").exists():
        with contextlib.suppress(OSError):  # it went away, or may not be killed by us
            (path / "cgroup.kill").write_text("1")


def remove(path: Path) -> None:
    """Remove an empty cgroup, those below, and the attempt's if it was the last."""
    below = sorted((p for p in path.rglob("*") if p.is_dir()), reverse=True)
    for each in (*below, path, path.parent):
        with contextlib.suppress(OSError):  # in use by another rank, or gone already
            each.rmdir()


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text().split()
    except FileNotFoundError:
        return []  # the cgroup went away while we looked
