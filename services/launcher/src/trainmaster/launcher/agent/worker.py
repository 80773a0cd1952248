"""A process that answers questions about files as one user, line by line.

`python -m trainmaster.launcher.agent.worker UID GID [GROUP…]`. Root starts it, because
only root may read everything Python needs; it becomes the user before it reads the
first question and never goes back. It ends when nobody can ask any more.
"""

import json
import os
import sys
import traceback
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Final

from trainmaster.core.errors import PermanentError
from trainmaster.launcher.agent.answers import Answers, envelope

_AT_ONCE: Final = 4


class NobodyError(PermanentError):
    """The kernel takes the highest id for `no change`: this would have stayed root."""

    def __init__(self, *, uid: int, gid: int) -> None:
        super().__init__(f"nobody has uid {uid} and gid {gid}")


def become(uid: int, gid: int, groups: Sequence[int]) -> None:
    """Turn into the user, for good; raises NobodyError."""
    os.setgroups(groups)
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    if uid not in os.getresuid() or gid not in os.getresgid():
        raise NobodyError(uid=uid, gid=gid)
    os.umask(0o022)


def end_if_failed(answered: Future[None]) -> None:
    """End this process when it cannot answer: who asked must not wait for ever."""
    error = answered.exception()
    if error is not None:
        traceback.print_exception(error)
        os._exit(1)


def main() -> None:
    """Become the user, then answer until the input ends."""
    uid, gid, *groups = map(int, sys.argv[1:])
    become(uid, gid, groups)
    answers, turn = Answers(), Lock()

    def answer(line: bytes) -> None:
        asked = json.loads(line)
        body = json.dumps(asked["body"]).encode()
        reply = answers.answer(asked["question"], body)
        with turn:
            sys.stdout.buffer.write(envelope(asked["number"], asked["question"], reply))
            sys.stdout.buffer.flush()

    with ThreadPoolExecutor(_AT_ONCE) as threads:
        for line in sys.stdin.buffer:
            threads.submit(answer, line).add_done_callback(end_if_failed)


if __name__ == "__main__":
    main()
