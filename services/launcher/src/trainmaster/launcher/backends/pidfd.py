"""Handles on processes; by system call where this Python was built without them.

A Python built against kernel headers older than 5.3 lacks the functions on any kernel.
"""

import ctypes
import os
import signal
from collections.abc import Callable
from typing import Final

# New system calls have the same number on every architecture.
_SEND_SIGNAL: Final = 424
_OPEN: Final = 434


def call(number: int, *arguments: int | None) -> int:
    """Make a system call; raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    result: int = libc.syscall(number, *arguments)
    if result < 0:
        errno = ctypes.get_errno()
        raise OSError(errno, os.strerror(errno))
    return result


def open_by_call(pid: int) -> int:
    """Do what os.pidfd_open does."""
    return call(_OPEN, pid, 0)


def send_by_call(pidfd: int, number: int) -> None:
    """Do what signal.pidfd_send_signal does."""
    call(_SEND_SIGNAL, pidfd, number, None, 0)


pidfd_open: Final[Callable[[int], int]] = getattr(os, "pidfd_open", open_by_call)
pidfd_send: Final[Callable[[int, int], None]] = getattr(
    signal, "pidfd_send_signal", send_by_call
)
