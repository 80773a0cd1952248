"""Owns how a stack is started and stopped from here: another program of ours does it."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from trainmaster.cli.exits import Exit
from trainmaster.cli.output import say
from trainmaster.cli.output import write as put
from trainmaster.client.credentials import data_directory

_MODULE: Final = "trainmaster.runtime.stack"
_READY_SECONDS: Final = 120.0
_LOOK_SECONDS: Final = 0.02
_LOG: Final = "up.log"


def replace_by(verb: str, options: Sequence[str]) -> None:
    """Become the stack's own program, which then hears Ctrl-C itself."""
    sys.stdout.flush()
    os.execv(sys.executable, _command(verb, options))  # noqa: S606 - no shell is wanted


def start_detached(data: Path | None, options: Sequence[str]) -> int:
    """Start a stack that outlives this terminal; returns once it is ready."""
    directory = data_directory(data, os.environ).absolute()
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    log = directory / _LOG
    with log.open("wb") as output:
        process = subprocess.Popen(
            _command("up", options),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    code = _wait_until_ready(process, directory / "credentials.json")
    put(log.read_text(errors="replace"))
    if code is None:
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
        if credentials.exists():
            return None
        time.sleep(_LOOK_SECONDS)
    process.terminate()
    say(f"It was not ready after {_READY_SECONDS:g} s and was stopped.")
    return Exit.TIMED_OUT


def _command(verb: str, options: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", _MODULE, verb, *options]
