"""Decides what PostgreSQL is told: pure, from values to its settings.

Small, because it serves one stack on one machine beside a training job; durable,
because tokens and archives live in it. Settings are given on the command line, where
they win over the files of a cluster that an older version has made.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from trainmaster.runtime.embedded.ports import LOOPBACK

SUPERUSER: Final = "postgres"
SOCKET_PATH_BYTES_MAX: Final = 107
_LONGEST_SOCKET_NAME: Final = ".s.PGSQL.65535"
_STATUS_LINE: Final = 7

SETTINGS: Final[Mapping[str, str]] = {
    "listen_addresses": LOOPBACK,
    "max_connections": "60",
    "shared_buffers": "16MB",
    "fsync": "on",
    "recovery_init_sync_method": "syncfs",  # one flush after a crash, not a thousand
    "jit": "off",
    "huge_pages": "off",
    # nothing replicates a laptop: the smallest log, and no processes that wait for it
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "min_wal_size": "32MB",
    "max_wal_size": "256MB",
    "max_worker_processes": "2",
    "max_parallel_workers": "0",
    "max_logical_replication_workers": "0",
    "io_method": "sync",  # the default keeps three more processes
    "autovacuum_max_workers": "1",
    # statements may hold passwords, so they are not quoted in the log
    "log_min_error_statement": "panic",
    "log_min_messages": "warning",
    "log_checkpoints": "off",
    "logging_collector": "off",
    "log_timezone": "UTC",
    "timezone": "UTC",
    "cluster_name": "trainmaster",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PostmasterStatus:
    """What the server says about itself in postmaster.pid."""

    pid: int
    ready: bool


def initdb_arguments(*, cluster: Path, password_file: Path) -> tuple[str, ...]:
    """Say how a cluster is made, and flushed to disk: all that follows rests on it.

    One flush of the file system costs nothing measurable beside initdb itself; one of
    each file costs a hundred milliseconds on an idle disk and seconds on a busy one.
    """
    return (
        f"--pgdata={cluster}",
        f"--username={SUPERUSER}",
        f"--pwfile={password_file}",
        "--auth=scram-sha-256",
        "--encoding=UTF8",
        "--no-locale",
        "--sync-method=syncfs",
        "--no-instructions",
    )


def server_arguments(
    *, cluster: Path, port: int, socket: Path | None
) -> tuple[str, ...]:
    """Say how the server of a cluster is run."""
    settings = {
        **SETTINGS,
        "port": str(port),
        "unix_socket_directories": "" if socket is None else str(socket),
    }
    pairs = (f"--{name.replace('_', '-')}={value}" for name, value in settings.items())
    return ("-D", str(cluster), *pairs)


def fits_a_socket(directory: Path) -> bool:
    """Tell whether a socket below this directory has a path the kernel takes."""
    path = directory / _LONGEST_SOCKET_NAME
    # a comma would split the setting into two directories
    return "," not in str(path) and len(bytes(path)) <= SOCKET_PATH_BYTES_MAX


def parse_postmaster(text: str) -> PostmasterStatus | None:
    """Read postmaster.pid; None while it is being written."""
    lines = text.splitlines()
    if not lines or not lines[0].strip().isdecimal():
        return None
    status = lines[_STATUS_LINE].strip() if len(lines) > _STATUS_LINE else ""
    return PostmasterStatus(pid=int(lines[0]), ready=status == "ready")


def dsn(*, user: str, password: str, port: int, database: str) -> str:
    """Write a connection string; names may hold any character.

    Loopback needs no TLS, and saying so spares every connection the question.
    """
    who = f"{quote(user, safe='')}:{quote(password, safe='')}"
    where = f"{LOOPBACK}:{port}"
    return f"postgresql://{who}@{where}/{quote(database, safe='')}?sslmode=disable"
