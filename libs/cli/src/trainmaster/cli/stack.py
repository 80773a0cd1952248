"""Owns how a stack is started and stopped from here, by a program of its own."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from trainmaster.cli.exits import Exit
from trainmaster.cli.output import say
from trainmaster.cli.output import write as put
from trainmaster.client.credentials import data_directory

PROGRAM: Final = (sys.executable, "-m", "trainmaster.runtime.stack")
_READY_SECONDS: Final = 120.0
_LOOK_SECONDS: Final = 0.02
_LOG: Final = "up.log"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What `tm up` was told; `data` is passed on only when it was told."""

    data: Path | None = None
    nodes: int = 1
    fake_accelerators: int = 0
    log_level: str = "WARNING"

    def words(self) -> tuple[str, ...]:
        """Say it to the stack's own program."""
        return (
            "up",
            *(("--data-dir", str(self.data)) if self.data else ()),
            *("--nodes", str(self.nodes)),
            *("--fake-accelerators", str(self.fake_accelerators)),
            *("--log-level", self.log_level),
        )


def replace_by(words: Sequence[str], *, program: Sequence[str] = PROGRAM) -> NoReturn:
    """Become the stack's own program, which then hears Ctrl-C itself."""
    sys.stdout.flush()
    os.execv(program[0], [*program, *words])  # noqa: S606 - no shell is wanted


def start_detached(wanted: Wanted, *, program: Sequence[str] = PROGRAM) -> int:
    """Start a stack that outlives this terminal; returns once it is ready."""
    directory = data_directory(wanted.data, os.environ).absolute()
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    log = directory / _LOG
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*program, *wanted.words()],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    code = _wait_until_ready(process, directory / "credentials.json")
    put(log.read_text(errors="replace"))
    if code is None:
        process.returncode = 0  # let go of it: it goes on without us
        say(f"It runs in the background (log: {log}); `tm down` stops it.")
        return Exit.OK
    return code


def _wait_until_ready(
    process: "subprocess.Popen[bytes]", credentials: Path
) -> int | None:
    """Wait for the credentials; returns the code of a process that ended instead."""
    end = time.monotonic() + _READY_SECONDS
    while time.monotonic() < end:
        code = process.poll()
        if code is not None:
            return code
        if _pid_in(credentials) == process.pid:
            return None
        time.sleep(_LOOK_SECONDS)
    process.terminate()
    say(f"It was not ready after {_READY_SECONDS:g} s and was stopped.")
    return Exit.TIMED_OUT


def _pid_in(credentials: Path) -> int:
    """Read whose these are, 0 for nobody's; a killed stack leaves its own behind."""
    try:
        return int(json.loads(credentials.read_text())["pid"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0
