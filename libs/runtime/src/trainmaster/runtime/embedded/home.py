"""Decides where PostgreSQL's files are, when it runs as another user than we do.

An ordinary user's cluster is `<data>/postgres`. Root's cluster belongs to another
account, which must be able to *reach* it and the programs. The steps, least first:

1. `<data>/postgres` is root's, its group is the account's, mode 0710: the account may
   pass through. Only `data` and `socket` inside belong to the account.
2. `<data>` itself, if it is root's and closed, is opened in the same way: its group
   becomes the account's, which may pass but not list (if its group has rights already,
   everybody may pass instead). What is inside stays 0700 and 0600.
3. A closed folder above (root's home, say) is not ours to open. Then the files live in
   a folder of their own below /var/lib (else /var/tmp, else TMPDIR), and
   `<data>/postgres` is a link to it. The link is the only record: a person sees it, and
   a data directory made anew at the same path never meets an old cluster. Who deletes a
   data directory by hand leaves such a folder behind; `EmbeddedPostgres.remove` does
   not. Its name holds a hash of the data directory's path.
4. Programs in a closed folder are linked, or copied from another disk, to
   `<data>/postgres/programs`.

Reachability is tried as the account, not computed: access lists, network file systems
and security modules have a say that mode bits do not show.
"""

import hashlib
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from trainmaster.runtime.embedded.account import Account
from trainmaster.runtime.embedded.errors import ServerPlaceError
from trainmaster.runtime.embedded.files import private_directory
from trainmaster.runtime.embedded.programs import PostgresInstall

PASS_THROUGH_MODE: Final = 0o710
ELSEWHERE: Final = ("/var/lib", "/var/tmp")  # noqa: S108 - mkdtemp picks the name
_PROBE: Final = 'for path do test -x "$path" || { echo "$path"; exit 1; }; done'
_PROBE_SECONDS: Final = 20.0


def settle_home(data: Path, account: Account | None) -> Path:
    """Make the directory of the cluster, or find where it was made."""
    place = private_directory(data) / "postgres"
    if account is None:
        return private_directory(place).resolve()
    if place.is_symlink():
        return _kept_elsewhere(place, account)
    private_directory(place)
    if _lend(place, account):
        return place
    if (place / "data").exists():
        raise _out_of_reach(place, account)
    return _settle_elsewhere(place, account)


def lent_directory(path: Path, account: Account | None) -> Path:
    """Make a private directory that belongs to the account."""
    private_directory(path)
    if account is not None:
        os.chown(path, account.uid, account.gid)
    return path


def unreachable(paths: Sequence[Path], account: Account) -> Path | None:
    """Name the first path that the account cannot enter or run."""
    probe = subprocess.run(
        ("/bin/sh", "-c", _PROBE, "sh", *map(str, paths)),
        user=account.uid,
        group=account.gid,
        extra_groups=(),
        cwd="/",
        capture_output=True,
        text=True,
        timeout=_PROBE_SECONDS,
        check=False,
    )
    return None if probe.returncode == 0 else Path(probe.stdout.strip())


def reachable_install(
    install: PostgresInstall, *, home: Path, account: Account | None
) -> PostgresInstall:
    """Give the account programs that it can run."""
    programs = (install.initdb, install.postgres)
    if account is None or unreachable(programs, account) is None:
        return install
    status = install.postgres.stat()
    site = home / "programs" / f"{status.st_size:x}-{status.st_mtime_ns:x}"
    if not site.is_dir():
        _copy_install(install, site)
    return PostgresInstall(site=site)


def _lend(place: Path, account: Account) -> bool:
    """Let the account pass through a directory, opening what is ours on the way."""
    try:
        if place.stat().st_uid != account.uid:
            os.chown(place, -1, account.gid)
            place.chmod(PASS_THROUGH_MODE)
        if unreachable([place], account) is None:
            return True
        return _open(place.parent, account) and unreachable([place], account) is None
    except PermissionError:  # a network disk where root is nobody
        return False


def _open(directory: Path, account: Account) -> bool:
    """Let the account pass through the data directory, if that is ours."""
    status = directory.stat()
    if status.st_uid != os.geteuid():
        return False
    mode = stat.S_IMODE(status.st_mode)
    if mode & stat.S_IRWXG:
        directory.chmod(mode | stat.S_IXOTH)
    else:
        os.chown(directory, -1, account.gid)
        directory.chmod(mode | stat.S_IXGRP)
    return True


def _kept_elsewhere(place: Path, account: Account) -> Path:
    home = place.resolve()
    if not home.is_dir():
        raise ServerPlaceError(
            server="PostgreSQL",
            place=place,
            why=f"it points to {home}, which is gone",
            hint=f"bring {home} back, or remove {place} to begin with an empty one",
        )
    if unreachable([home], account) is not None:
        raise _out_of_reach(home, account)
    return home


def _settle_elsewhere(place: Path, account: Account) -> Path:
    digest = hashlib.sha256(str(place.parent).encode()).hexdigest()[:8]
    for base in (*ELSEWHERE, tempfile.gettempdir()):
        try:
            made = tempfile.mkdtemp(prefix=f"trainmaster-postgres-{digest}-", dir=base)
        except OSError:
            continue  # read-only or absent: the next one
        home = Path(made)
        os.chown(home, -1, account.gid)
        home.chmod(PASS_THROUGH_MODE)
        if unreachable([home], account) is None:
            place.rmdir()
            place.symlink_to(home)
            return home
        home.rmdir()
    raise _out_of_reach(place, account)


def _out_of_reach(place: Path, account: Account) -> ServerPlaceError:
    blocked = next(
        (
            folder
            for folder in reversed([place, *place.parents])
            if unreachable([folder], account) is not None
        ),
        place,
    )
    return ServerPlaceError(
        server="PostgreSQL",
        place=place,
        why=f"it refuses to run as root, and its user {account.name} cannot pass "
        f"through {blocked}",
        hint=f"run `chmod o+x {blocked}`, or choose another data directory",
    )


def _copy_install(install: PostgresInstall, site: Path) -> None:
    """Link the programs to where they can be reached, whole or not at all."""
    shutil.rmtree(site.parent, ignore_errors=True)  # older versions, unfinished copies
    draft = site.with_name("draft")
    for part in install.parts:
        for source in (install.site / part, *sorted((install.site / part).rglob("*"))):
            _link_or_copy(source, draft / source.relative_to(install.site))
    for directory in (site.parent, draft, *filter(Path.is_dir, draft.rglob("*"))):
        directory.chmod(0o755)
    draft.rename(site)


def _link_or_copy(source: Path, target: Path) -> None:
    if source.is_dir():
        target.mkdir(parents=True, exist_ok=True)
        return
    mode = source.stat().st_mode
    try:
        if mode & stat.S_IROTH:  # a link shares the mode: a closed file needs a copy
            target.hardlink_to(source.resolve())
            return
    except OSError:
        pass  # another disk
    shutil.copyfile(source, target)
    target.chmod(0o755 if mode & stat.S_IXUSR else 0o644)
