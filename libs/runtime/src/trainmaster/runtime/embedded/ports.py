"""Decides which loopback port a server gets: chosen once, then kept.

Chosen outside the range the kernel hands to outgoing connections: a kept port from
that range would sooner or later be in use by a passing one when the server comes back.
"""

import secrets
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from trainmaster.runtime.embedded.errors import ServerPlaceError
from trainmaster.runtime.embedded.files import read_kept, write_private

LOOPBACK: Final = "127.0.0.1"
TRIES_MAX: Final = 100
_EPHEMERAL: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST, _HIGHEST, _ROOM = 20_000, 65_535, 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """A settled port, and the one it had to leave to a stranger."""

    number: int
    moved_from: int | None = None


def quiet_range(ephemeral: tuple[int, int]) -> range:
    """Pick the ports no outgoing connection is given, if enough are left."""
    low, high = ephemeral
    if low - _LOWEST >= _ROOM:
        return range(_LOWEST, low)
    if _HIGHEST - high >= _ROOM:
        return range(high + 1, _HIGHEST + 1)
    return range(_LOWEST, _HIGHEST + 1)


def settle_port(file: Path, *, move: bool = True) -> Port:
    """Keep the port of this file if it is free, else choose and keep another.

    Raises ServerPlaceError instead of moving when it must not `move`.
    """
    kept = kept_port(file)
    if kept is not None and is_free(kept):
        return Port(number=kept)
    if kept is not None and not move:
        raise ServerPlaceError(
            server="a server with clients",
            place=file,
            why=f"its port {kept} was taken by another program",
            hint="end that program (`ss -ltnp` names it)",
        )
    chosen = _choose(file)
    write_private(file, f"{chosen}\n")
    return Port(number=chosen, moved_from=kept)


def kept_port(file: Path) -> int | None:
    """Read a kept port; None when there is none."""
    kept = read_kept(file)
    return int(kept) if kept is not None and kept.isdecimal() else None


def is_free(port: int) -> bool:
    """Tell whether a server could listen there; closing connections do not count."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as candidate:
        candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            candidate.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def _choose(file: Path) -> int:
    candidates = quiet_range(_ephemeral())
    for _ in range(TRIES_MAX):
        port = secrets.choice(candidates)
        if is_free(port):
            return port
    raise ServerPlaceError(
        server="an embedded server",
        place=file,
        why=f"{TRIES_MAX} ports from {candidates.start} to {candidates.stop - 1} "
        "were all taken",
        hint=f"write a free port into {file}",
    )


def _ephemeral() -> tuple[int, int]:
    try:
        low, high = _EPHEMERAL.read_text().split()
    except FileNotFoundError:  # a sandbox without it: the kernel's usual range
        return 32_768, 60_999
    return int(low), int(high)
