"""Does work on files as the job's user: in a thread if that is us, else in a process.

Root is used to switch user and never to look at, hash or move a user's files: what a
user links to is only followed as far as the user may go.
"""

import asyncio
import contextlib
import json
import sys
from asyncio.subprocess import PIPE, Process
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from trainmaster.core.errors import PermanentError, TransientError
from trainmaster.launcher.agent.answers import EXAMINE, Answers, envelope
from trainmaster.launcher.backends.model import JobUser

_IDLE_SECONDS: Final = 120.0
_SLOW_AT_ONCE: Final = 4
NO_ID: Final = 2**32 - 1
"""The kernel takes this id for `no change`, so that root would stay root."""
_LINE_BYTES_MAX: Final = 64 * 2**20
_PATH: Final = "/usr/local/bin:/usr/bin:/bin"


class CannotBecomeError(PermanentError):
    """An agent that is not root acts for nobody else."""

    def __init__(self, *, own: int, other: int) -> None:
        super().__init__(
            f"the agent runs as uid {own} and cannot act for uid {other}; "
            "run it as root, or submit as its own user"
        )


class WorkerDiedError(TransientError):
    """A worker ended before it had answered."""

    def __init__(self, *, uid: int) -> None:
        super().__init__(f"the worker of uid {uid} ended before it answered; ask again")


class Hands:
    """Answers questions as any user this agent, which runs as `uid`, may act for."""

    def __init__(self, *, uid: int) -> None:
        self._uid = uid
        self._own = Answers()
        # hashing takes minutes and must not keep the quick questions waiting
        self._slow = ThreadPoolExecutor(_SLOW_AT_ONCE, thread_name_prefix="hands")
        self._workers: dict[JobUser, _Worker] = {}

    def check(self, user: JobUser | None) -> None:
        """Make sure that this agent may act for a user; raises CannotBecomeError."""
        if user is None or user.uid == self._uid:
            return
        if self._uid != 0 or NO_ID in {user.uid, user.gid}:
            raise CannotBecomeError(own=self._uid, other=user.uid)

    async def ask(self, user: JobUser | None, question: str, body: bytes) -> bytes:
        """Answer as a user; raises CannotBecomeError, WorkerDiedError."""
        if user is None or user.uid == self._uid:
            threads = None if question == EXAMINE else self._slow
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(threads, self._own.answer, question, body)
        self.check(user)
        worker = self._workers.get(user)
        if worker is None or worker.ended:
            worker = self._workers[user] = _Worker(user)
        return await worker.ask(question, body)

    async def close(self) -> None:
        """End all workers, and give up what takes long."""
        self._own.stop()
        self._slow.shutdown(wait=False, cancel_futures=True)
        for worker in self._workers.values():
            await worker.close()
        self._workers.clear()


class _Worker:
    """One process of one user, started when first asked and ended when long not."""

    def __init__(self, user: JobUser) -> None:
        self.ended = False
        self._user = user
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._asked = 0
        self._process: Process | None = None
        self._starting = asyncio.Lock()
        self._listening: asyncio.Task[None] | None = None
        self._idle: asyncio.TimerHandle | None = None

    async def ask(self, question: str, body: bytes) -> bytes:
        """Ask and wait."""
        process = await self._started()
        self._asked += 1
        number = self._asked
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[bytes] = loop.create_future()
        self._waiting[number] = answer
        try:
            self._write(process, envelope(number, question, body))
            return await answer
        finally:
            self._waiting.pop(number, None)
            self._rest(loop)

    async def close(self) -> None:
        """End it at once, and wait until it has ended."""
        self._end()
        if self._process is not None and self._listening is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._listening

    async def _started(self) -> Process:
        async with self._starting:
            if self._process is None:
                user = self._user
                self._process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-m",
                    "trainmaster.launcher.agent.worker",
                    *map(str, (user.uid, user.gid, *user.groups)),
                    stdin=PIPE,
                    stdout=PIPE,
                    env={"PATH": _PATH, "LANG": "C.UTF-8"},
                    cwd="/",
                    limit=_LINE_BYTES_MAX,
                )
                self._listening = asyncio.create_task(self._listen(self._process))
        return self._process

    def _write(self, process: Process, line: bytes) -> None:
        if process.stdin is None or self.ended:
            raise WorkerDiedError(uid=self._user.uid)
        process.stdin.write(line)

    async def _listen(self, process: Process) -> None:
        while process.stdout is not None and (line := await process.stdout.readline()):
            said = json.loads(line)
            answer = self._waiting.get(said["number"])
            if answer is not None and not answer.done():
                answer.set_result(json.dumps(said["body"]).encode())
        self.ended = True
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(WorkerDiedError(uid=self._user.uid))
        await process.wait()

    def _rest(self, loop: asyncio.AbstractEventLoop) -> None:
        """Count the time without a question anew."""
        if self._idle is not None:
            self._idle.cancel()
        if not self._waiting:
            self._idle = loop.call_later(_IDLE_SECONDS, self._end)

    def _end(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        self.ended = True
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
