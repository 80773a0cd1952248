"""Asks nodes what lies on disk: an effect whose findings are facts for the policy.

One question per job at a time. While a job runs it is asked every few seconds; when
somebody waits for the answer it is asked at once, and again after growing waits until a
node answers. What is in the way of the choice is set aside before the finding is told.
"""

import asyncio
import contextlib
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from pathlib import PurePosixPath
from typing import Final, TypeVar

from pydantic import ValidationError

from trainmaster.checkpoint_manager.choice import pick
from trainmaster.checkpoint_manager.notes import is_whole, newly_whole
from trainmaster.checkpoint_manager.settings import (
    AGAIN_SECONDS,
    ASK_SECONDS,
    BACKOFF_SECONDS,
    BLIND_ROUNDS,
    REASONS_SHOWN_MAX,
    SLOTS,
    WATCH_SECONDS,
)
from trainmaster.checkpoint_manager.state import State
from trainmaster.checkpoint_manager.wants import (
    CHOOSING,
    URGENT,
    Blind,
    Finding,
    Phase,
    Scanned,
    Want,
    is_own,
    lies_at,
    wanted,
)
from trainmaster.core import subjects
from trainmaster.core.decision import Changed
from trainmaster.core.errors import TransientError, UnreachableError
from trainmaster.core.ids import JobKey, NodeKey
from trainmaster.core.messages import (
    AsideReply,
    AsideRequest,
    ScannedCheckpoint,
    ScanReply,
    ScanRequest,
)
from trainmaster.core.model import Message
from trainmaster.core.values import Rejected
from trainmaster.runtime.failpoints import FAILPOINTS
from trainmaster.runtime.service import Env
from trainmaster.runtime.telemetry import logger

Reply = TypeVar("Reply", ScanReply, AsideReply)
_Found = tuple[ScannedCheckpoint, ...]
SCAN_FACT: Final = "scan:"


class CannotLookError(TransientError):
    """A node could not answer a question about its disk."""

    def __init__(self, *, node: NodeKey, question: str, why: str) -> None:
        super().__init__(f"{node.node} cannot {question}: {why}")


class Scanner:
    """Looks at the checkpoints of all jobs that want it."""

    def __init__(self, env: Env, *, watch_seconds: float = WATCH_SECONDS) -> None:
        self._env = env
        self._watch_seconds = watch_seconds
        self._log = logger(env.name)
        self._wants: dict[JobKey, Want] = {}
        self._followers: dict[JobKey, asyncio.Task[None]] = {}
        self._restarts: set[JobKey] = set()
        self._wake = asyncio.Event()
        self._hints: dict[JobKey, asyncio.Event] = {}
        self._slots = {each: asyncio.Semaphore(SLOTS[each]) for each in SLOTS}
        self._told: dict[JobKey, str] = {}
        self._findings = 0

    def want(self, state: State, changed: set[Changed] | None) -> None:
        """Note which jobs should be looked at, and why."""
        for key in _concerned(state, changed, self._wants):
            self._note(key, wanted(state, key))

    def hint(self, key: JobKey) -> None:
        """Look at a job now and not at its next turn; a scan in progress goes on."""
        hinted = self._hints.get(key)
        if hinted is not None:
            hinted.set()

    async def run(self) -> None:
        """Look until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                while True:
                    await self._wake.wait()
                    self._wake.clear()
                    self._start(tasks)
        finally:
            self._wants.clear()
            self._followers.clear()
            self._hints.clear()

    def _note(self, key: JobKey, want: Want | None) -> None:
        before = self._wants.get(key)
        if want is None:
            self._wants.pop(key, None)
            self._told.pop(key, None)
            self._hints.pop(key, None)
        else:
            self._wants[key] = want
        if (before and before.identity) != (want and want.identity):
            self._restarts.add(key)
            self._wake.set()

    def _start(self, tasks: asyncio.TaskGroup) -> None:
        """Give every job whose question changed a new follower."""
        restarts, self._restarts = self._restarts, set()
        for key in restarts:
            follower = self._followers.pop(key, None)
            if follower is not None:
                follower.cancel()
            if key in self._wants:
                self._followers[key] = tasks.create_task(self._follow(key))

    async def _follow(self, key: JobKey) -> None:
        """Look at one job again and again while its question stays the same."""
        urgent = self._wants[key].phase in URGENT
        failures = 0
        hinted = self._hints.setdefault(key, asyncio.Event())
        if not urgent:
            await _rest(self._watch_seconds, hinted)
        while True:
            async with self._slots[urgent]:
                want = self._wants.get(key)
                if want is None:
                    return
                finding = await self._look(want)
            failures = failures + 1 if isinstance(finding, Blind) else 0
            if self._is_news(finding, failures):
                self._tell(finding)
            regular = AGAIN_SECONDS if urgent else self._watch_seconds
            await _rest(regular, hinted, failures=failures)

    async def _look(self, want: Want) -> Finding:
        """Take the findings of the first node that can look."""
        reasons: list[str] = []
        for node in want.nodes:
            try:
                return await self._look_from(node, want)
            except CannotLookError as error:
                reasons.append(str(error))
        why = "; ".join(reasons[:REASONS_SHOWN_MAX]) or "no node of its pool is there"
        job = want.job
        self._log.warning("nobody_can_look", job=job.id, phase=want.phase, why=why)
        return Blind(key=job.key, attempt=job.attempt, place=want.place, reason=why)

    async def _look_from(self, node: NodeKey, want: Want) -> Scanned:
        """Let one node look everywhere, and move what is in the way of the choice."""
        scan = Scanned(
            key=want.job.key,
            attempt=want.job.attempt,
            phase=want.phase,
            node=node.node,
        )
        if want.phase is not Phase.RESUME or is_own(want.job):
            own = await self._scan(node, want, want.job.spec.checkpoint.directory)
            scan = replace(scan, own=own)
        if _goes_back(want, scan):
            scan = replace(scan, origin=await self._origin(node, want))
        picked = pick(want.job, want.catalogue, scan)
        if picked is None or not picked.in_the_way:
            return scan
        moved = await self._set_aside(node, want, picked.in_the_way)
        return replace(scan, moved=moved)

    async def _origin(self, node: NodeKey, want: Want) -> _Found:
        """Look below the origin, or beside it when it is a checkpoint itself."""
        origin = want.job.spec.checkpoint.resume_from
        below = await self._scan(node, want, origin)
        if below:
            return below
        beside = await self._scan(node, want, str(PurePosixPath(origin).parent))
        return tuple(c for c in beside if lies_at(c, origin))

    async def _scan(self, node: NodeKey, want: Want, directory: str) -> _Found:
        request = ScanRequest(
            directory=directory,
            user=want.job.spec.user,
            known=want.catalogue.known(),
        )
        reply = await self._ask(node, "scan", request, ScanReply)
        ahead = self._ahead(reply)
        return tuple(_proven(c, ahead) for c in reply.checkpoints)

    def _ahead(self, reply: ScanReply) -> timedelta:
        """Say how much the node's clock is ahead of the log's."""
        loop = self._env.loop
        if loop is None or reply.at is None:
            return timedelta()
        return reply.at - loop.clock.now()

    async def _set_aside(
        self, node: NodeKey, want: Want, in_the_way: _Found
    ) -> tuple[Rejected, ...]:
        request = AsideRequest(
            directory=want.job.spec.checkpoint.directory,
            paths=tuple(c.path for c in in_the_way),
            user=want.job.spec.user,
        )
        return (await self._ask(node, "aside", request, AsideReply)).moved

    async def _ask(
        self, node: NodeKey, question: str, request: Message, kind: type[Reply]
    ) -> Reply:
        """Ask one node. Raises CannotLookError when it gives no usable answer."""
        FAILPOINTS.reach(f"{self._env.name}.before_{question}")
        try:
            answer = await self._env.bus.request(
                subjects.ask(node, question), request.to_json(), seconds=ASK_SECONDS
            )
            reply = kind.from_json(answer.data)
        except UnreachableError as error:
            why = "its agent does not answer"
            raise CannotLookError(node=node, question=question, why=why) from error
        except ValidationError as error:
            why = f"its answer has {error.error_count()} invalid fields"
            raise CannotLookError(node=node, question=question, why=why) from error
        FAILPOINTS.reach(f"{self._env.name}.after_{question}")
        if reply.error:
            raise CannotLookError(node=node, question=question, why=reply.error)
        return reply

    def _is_news(self, finding: Finding, failures: int) -> bool:
        """Tell whether the policy has anything to do with it."""
        want = self._wants.get(finding.key)
        if want is None:
            return False
        choosing = want.phase in CHOOSING
        if isinstance(finding, Blind):
            return choosing and failures >= BLIND_ROUNDS
        return choosing or bool(newly_whole(want.catalogue, finding.own))

    def _tell(self, finding: Finding) -> None:
        """State a finding as a fact, in place of an older one nobody has judged."""
        self._env.facts.drop(self._told.get(finding.key, ""))
        self._findings += 1
        name = f"{SCAN_FACT}{finding.key.job}:{finding.attempt}:{self._findings}"
        self._told[finding.key] = name
        self._env.facts.put(name, finding)


def _concerned(
    state: State, changed: set[Changed] | None, wants: Iterable[JobKey]
) -> set[JobKey]:
    """Name the jobs whose question may be another one now."""
    if changed is None:
        return {*state.jobs, *wants}
    keys = {key for _, key in changed if isinstance(key, JobKey)}
    if any(isinstance(key, NodeKey) for _, key in changed):
        keys.update(wants)
    return keys


def _goes_back(want: Want, scan: Scanned) -> bool:
    """Tell whether the job goes back to where it came from."""
    if is_own(want.job) or not want.job.spec.checkpoint.resume_from:
        return False
    if want.phase is Phase.FINAL:
        return not any(map(is_whole, scan.own))
    return want.phase is Phase.RESUME


def _proven(found: ScannedCheckpoint, ahead: timedelta) -> ScannedCheckpoint:
    """Trust nothing that has no digest, and no clock but the log's."""
    changes: dict[str, object] = {}
    if found.saved_at is not None:
        changes["saved_at"] = found.saved_at - ahead
    if not found.problem and not found.digest:
        changes["problem"] = "it has no digest"
    return found.model_copy(update=changes)


async def _rest(regular: float, hinted: asyncio.Event, *, failures: int = 0) -> None:
    """Wait for the next turn, longer after each failed one, or for a hint."""
    waits = (regular, *BACKOFF_SECONDS)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(waits[min(failures, len(BACKOFF_SECONDS))]):
            await hinted.wait()
    hinted.clear()
