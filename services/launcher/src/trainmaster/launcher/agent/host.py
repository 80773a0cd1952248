"""Says what this node has: devices, cores, memory, and the facts it is known by."""

import platform
import re
import socket
from pathlib import Path
from typing import Final

import psutil

from trainmaster.core.facts import Capacity

_DEVICES: Final = Path("/dev")
_DEVICE_NAME: Final = re.compile(r"nvidia[0-9]+")


def capacity(*, fake_accelerators: int = 0) -> Capacity:
    """Count what may be given away; fake devices stand in for real ones."""
    return Capacity(
        accelerators=fake_accelerators or count_devices(_DEVICES),
        cpus=psutil.cpu_count() or 1,
        memory_bytes=psutil.virtual_memory().total,
    )


def count_devices(directory: Path) -> int:
    """Count the accelerators the kernel offers."""
    return sum(1 for path in directory.iterdir() if _DEVICE_NAME.fullmatch(path.name))


def facts(*, boot_id: str, fake_accelerators: int = 0) -> dict[str, str]:
    """Describe the node for people and for equal placement."""
    described = {
        "host": socket.gethostname(),
        "kernel": platform.release(),
        "boot": boot_id,
    }
    return described | ({"accelerators": "fake"} if fake_accelerators else {})
