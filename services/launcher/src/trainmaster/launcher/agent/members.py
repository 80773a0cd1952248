"""Owns the ranks of one attempt on this node: starts, watches and streams them."""

import asyncio
import secrets
from collections.abc import Iterable, Sequence
from typing import Final

from trainmaster.core.facts import MemberStarted, RankExited
from trainmaster.core.ids import JobId, JobKey, MemberKey
from trainmaster.core.messages import Assignment
from trainmaster.launcher.agent.ended import rank_exit, start_failed
from trainmaster.launcher.agent.environment import ReservedVariableError
from trainmaster.launcher.agent.node import Node
from trainmaster.launcher.agent.ranks import Place, rank_specs
from trainmaster.launcher.agent.stream import AttemptStream
from trainmaster.launcher.backends.model import (
    AttemptKey,
    Found,
    Hindrance,
    Phase,
    RankKey,
    RankSpec,
    Spawned,
    SpawnFailed,
)
from trainmaster.launcher.backends.process import rank_request
from trainmaster.runtime.clock import pause

_BUSY_TRIES: Final = 50
_BUSY_SECONDS: Final = 0.1
_TOKEN_BYTES: Final = 16


class MemberRanks:
    """The ranks of one attempt on this node, running or not."""

    def __init__(self, node: Node, job: JobId, assignment: Assignment) -> None:
        self._node = node
        self._key = MemberKey(*node.key, job, assignment.attempt)
        self._stream = AttemptStream(
            node.bus,
            node.disk,
            JobKey(assignment.team, job),
            AttemptKey(job=job, number=assignment.attempt),
            node=node.key.node,
        )
        self._streaming = node.tasks.create_task(self._stream.run())
        self._watching: dict[RankKey, asyncio.Task[None]] = {}

    async def start(self, assignment: Assignment, place: Place) -> MemberStarted:
        """Spawn every rank that does not run yet, all at once."""
        try:
            specs = rank_specs(self._key.job, assignment, place)
        except ReservedVariableError as error:
            field = f"env.{error.name}"
            return start_failed("environment", field, str(error))
        outcomes = await asyncio.gather(*map(self._spawn, specs))
        return _started(outcomes)

    def adopt(self, assignment: Assignment, found: Iterable[Found]) -> None:
        """Watch and stream ranks that an earlier agent started."""
        specs = {}
        if assignment.spec is not None:
            every = rank_specs(self._key.job, assignment, Place())
            specs = {spec.key: spec for spec in every}
        for each in found:
            if each.key in specs:
                self._stream.follow(specs[each.key])
            if each.phase is not Phase.FAILED:
                self._watch(each.key)

    async def all_ended(self) -> None:
        """Wait until the end of every rank was said."""
        if self._watching:
            await asyncio.wait(self._watching.values())

    async def close(self) -> None:
        """Stream what is left to stream, then let go of everything."""
        await self._stream.finish()
        self._streaming.cancel()
        for watching in self._watching.values():
            watching.cancel()
        self._stream.close()

    async def _spawn(self, spec: RankSpec) -> Spawned | SpawnFailed:
        request = rank_request(spec, token=secrets.token_hex(_TOKEN_BYTES))
        outcome = await self._node.backend.spawn(request)
        for _ in range(_BUSY_TRIES):
            if not _is_busy(outcome):
                break
            await pause(_BUSY_SECONDS)
            outcome = await self._node.backend.spawn(request)
        if isinstance(outcome, Spawned):
            self._stream.follow(spec)
            self._watch(spec.key)
        return outcome

    def _watch(self, key: RankKey) -> None:
        if key not in self._watching:
            self._watching[key] = self._node.tasks.create_task(self._report_end(key))

    async def _report_end(self, key: RankKey) -> None:
        end = await self._node.backend.wait(key)
        lines = await self._stream.drain(key.rank)
        exit_ = rank_exit(
            end, rank=key.rank, node=self._node.key.node, last_lines=lines
        )
        self._node.reporter.say(self._key, RankExited(exit=exit_))


def _is_busy(outcome: Spawned | SpawnFailed) -> bool:
    return isinstance(outcome, SpawnFailed) and outcome.hindrance is Hindrance.BUSY


def _started(outcomes: Sequence[Spawned | SpawnFailed]) -> MemberStarted:
    """Say that all ranks run, or which one could not be started first."""
    for outcome in outcomes:
        if isinstance(outcome, SpawnFailed):
            return start_failed("start", outcome.step, outcome.message)
    return MemberStarted(
        pids=tuple(o.process.pid for o in outcomes if isinstance(o, Spawned))
    )
