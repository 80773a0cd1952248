"""Decides as which user PostgreSQL runs when we are root, which it refuses to be.

1. Whoever owns the cluster that is there already, so that one made by an ordinary user
   stays usable for that user.
2. The account `trainmaster-postgres`, made on first use with `useradd` or `adduser`: an
   account of its own, so that nothing else on the machine can read the cluster.
3. Where no account can be made (no such tool, a read-only /etc): one that exists for
   such ends. It is shared with whatever else runs as it, which is why it comes last.

An ordinary user needs none of this: PostgreSQL runs as that user.
"""

import os
import pwd
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from trainmaster.runtime.embedded.errors import ServerPlaceError

OWN_NAME: Final = "trainmaster-postgres"
SHARED_NAMES: Final = ("postgres", "nobody")
MAKERS: Final = (
    ("useradd", "--system", "--user-group", "--no-create-home", "--home-dir",
     "/nonexistent", "--shell", "/bin/false", OWN_NAME),
    ("adduser", "-S", "-D", "-H", "-h", "/nonexistent", "-s", "/bin/false", OWN_NAME),
)  # fmt: skip
"""The second is busybox's."""
_MAKE_SECONDS: Final = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A user that a process is started as."""

    name: str
    uid: int
    gid: int


def server_account(cluster: Path) -> Account | None:
    """Pick the user to run this cluster as; None means as ourselves."""
    if os.geteuid() != 0:
        return None
    return owner(cluster) or choose_account(find_account, make_account)


def owner(path: Path) -> Account | None:
    """Name who owns a path, unless that is root or the path is not there."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    if status.st_uid == 0:
        return None
    return Account(name=_name(status.st_uid), uid=status.st_uid, gid=status.st_gid)


def choose_account(
    find: Callable[[str], Account | None], make: Callable[[Sequence[str]], None]
) -> Account:
    """Find our own account, or make it, or fall back to a shared one."""
    if (own := find(OWN_NAME)) is not None:
        return own
    for maker in MAKERS:
        make(maker)
        if (own := find(OWN_NAME)) is not None:
            return own
    for name in SHARED_NAMES:
        if (shared := find(name)) is not None:
            return shared
    raise ServerPlaceError(
        server="PostgreSQL",
        place=Path("/etc/passwd"),
        why=f"it refuses to run as root, and has none of the users "
        f"{', '.join((OWN_NAME, *SHARED_NAMES))}",
        hint=f"make a user named {OWN_NAME}, or do not run as root",
    )


def find_account(name: str) -> Account | None:
    """Look an account up; root under another name does not count."""
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    if entry.pw_uid == 0:
        return None
    return Account(name=name, uid=entry.pw_uid, gid=entry.pw_gid)


def make_account(command: Sequence[str]) -> None:
    """Try to make an account; whether it is there is asked afterwards."""
    try:
        subprocess.run(command, capture_output=True, timeout=_MAKE_SECONDS, check=False)
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return  # this machine has the other tool, or none that works


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
