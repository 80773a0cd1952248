"""Answers questions about files, as whoever runs it: the agent or a user's worker."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from threading import Event

from pydantic import ValidationError

from trainmaster.core.errors import PermanentError
from trainmaster.core.messages import AsideReply, AsideRequest, ScanReply, ScanRequest
from trainmaster.launcher.agent.aside import move_aside
from trainmaster.launcher.agent.checkpoints import Scanner
from trainmaster.launcher.agent.hashing import hash_file
from trainmaster.launcher.agent.preflight import Examination, Examiner
from trainmaster.runtime.clock import wall

EXAMINE, SCAN, ASIDE = "examine", "scan", "aside"


class UnknownQuestionError(PermanentError):
    """Nobody knows how to answer this."""

    def __init__(self, *, question: str) -> None:
        super().__init__(
            f"no answer to {question!r}; the other side is newer than this"
        )


class Answers:
    """Answers by question; remembers what it hashed."""

    def __init__(self) -> None:
        self._stopped = Event()
        self._scanner = Scanner(hash_file=partial(hash_file, stopped=self._stopped))
        self._examiner = Examiner()
        self._by_question: Mapping[str, Callable[[bytes], bytes]] = {
            EXAMINE: self._examine,
            SCAN: self._scan,
            ASIDE: self._aside,
        }

    def answer(self, question: str, body: bytes) -> bytes:
        """Answer with the reply's wire form; raises UnknownQuestionError."""
        handler = self._by_question.get(question)
        if handler is None:
            raise UnknownQuestionError(question=question)
        return handler(body)

    def stop(self) -> None:
        """Give up what takes long."""
        self._stopped.set()

    def _examine(self, body: bytes) -> bytes:
        return self._examiner.examine(Examination.from_json(body)).to_json()

    def _scan(self, body: bytes) -> bytes:
        try:
            request = ScanRequest.from_json(body)
            found = self._scanner.scan(Path(request.directory))
        except (OSError, ValidationError) as error:
            return ScanReply(error=str(error)).to_json()
        return ScanReply(checkpoints=found, at=wall()).to_json()

    def _aside(self, body: bytes) -> bytes:
        try:
            request = AsideRequest.from_json(body)
            moved = move_aside(Path(request.directory), request.paths)
        except (OSError, ValidationError, PermanentError) as error:
            return AsideReply(error=str(error)).to_json()
        return AsideReply(moved=moved).to_json()


def envelope(number: int, question: str, body: bytes) -> bytes:
    """Write one line of the conversation with a worker."""
    line = {"number": number, "question": question, "body": json.loads(body or b"{}")}
    return json.dumps(line).encode() + b"\n"
