"""Leases ports of the pool's range to attempts, each to one at a time.

A port is tried by binding it, without taking over what a peer has just left. Not
promised: that nobody else binds it between the lease and the rank's start. Agents on
one host begin to look at different places, so that they do not meet.
"""

import hashlib
import socket
from typing import Final

from trainmaster.core.errors import TransientError
from trainmaster.launcher.backends.model import AttemptKey

X11_PORT: Final = 6000


class NoPortError(TransientError):
    """Every port of the range is in use."""

    def __init__(self, *, first: int, last: int) -> None:
        super().__init__(
            f"no port from {first} to {last} is free on this node; "
            "end what uses them or give the agent another range"
        )


class Ports:
    """The ports of one agent."""

    def __init__(self, *, first: int, last: int, seed: str) -> None:
        self._first, self._last = first, last
        count = last - first + 1
        digest = hashlib.sha256(seed.encode()).digest()
        self._next = first + int.from_bytes(digest[:4]) % count
        self._leased: dict[AttemptKey, int] = {}

    def lease(self, attempt: AttemptKey) -> int:
        """Lease a free port; the same one again to the same attempt."""
        known = self._leased.get(attempt)
        if known is not None:
            return known
        taken = {X11_PORT, *self._leased.values()}
        for _ in range(self._last - self._first + 1):
            port = self._take_turn()
            if port not in taken and _is_free(port):
                self._leased[attempt] = port
                return port
        raise NoPortError(first=self._first, last=self._last)

    def adopt(self, attempt: AttemptKey, port: int) -> None:
        """Take over a lease of an earlier agent."""
        if port:
            self._leased[attempt] = port

    def release(self, attempt: AttemptKey) -> None:
        """End a lease; ending none is a no-op."""
        self._leased.pop(attempt, None)

    def _take_turn(self) -> int:
        port = self._next
        self._next = self._first if port == self._last else port + 1
        return port


def _is_free(port: int) -> bool:
    """Try on all addresses at once: whoever has it on one of them has it."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
