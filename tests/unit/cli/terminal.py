"""Runs `tm` as a person, a pipe or a script would, against a server that is told."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.unit.client.server import Server

from trainmaster.cli.main import main

TM = (sys.executable, "-m", "trainmaster.cli.main")
WITHIN_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a command ended and what it wrote."""

    code: int
    out: str
    err: str


class Terminal:
    """`tm` with the credentials of one server."""

    def __init__(self, data: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.data = data
        self._capture = capture

    def knows(self, server: Server) -> None:
        kept = {"url": server.url, "token": "secret"}
        (self.data / "credentials.json").write_text(json.dumps(kept))

    def tm(self, *words: str) -> Ended:
        """Run a command in this process, its output in a pipe."""
        self._capture.readouterr()
        with pytest.raises(SystemExit) as caught:
            main([words[0], "--data-dir", str(self.data), *words[1:]])
        seen = self._capture.readouterr()
        return Ended(code=int(caught.value.code or 0), out=seen.out, err=seen.err)

    def tm_process(self, *words: str) -> "subprocess.Popen[str]":
        """Start a command in a process of its own, its output in a pipe."""
        return subprocess.Popen(
            [*TM, words[0], "--data-dir", str(self.data), *words[1:]],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def tm_on_a_screen(self, *words: str) -> str:
        """Run a command whose output is a terminal; returns what is on it."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [*TM, words[0], "--data-dir", str(self.data), *words[1:]],
            stdout=theirs,
            stderr=theirs,
            stdin=theirs,
            env=os.environ | {"TERM": "xterm", "COLUMNS": "120"},
        )
        os.close(theirs)
        seen = bytearray()
        try:
            while chunk := os.read(ours, 4096):
                seen += chunk
        except OSError:  # the kernel's way to say that the other end is closed
            pass
        finally:
            os.close(ours)
        assert process.wait(WITHIN_SECONDS) == 0, seen.decode()
        return seen.decode()


def interrupted(process: "subprocess.Popen[str]", *, once: Callable[[], bool]) -> Ended:
    """Press Ctrl-C as soon as something holds."""
    end = time.monotonic() + WITHIN_SECONDS
    while not once():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, "it did not come to that"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=WITHIN_SECONDS)
    return Ended(code=process.returncode, out=out, err=err)
