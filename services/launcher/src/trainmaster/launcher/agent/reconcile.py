"""Brings about on this node what is wanted of one job: wanted against what is there.

One task for each job looks for the next step, carries it out and looks again; an order
that asks for another step interrupts the one in hand. What is said is on disk before it
is said, so that a killed agent goes on where it was.
"""

import asyncio
import signal
from collections.abc import Sequence
from typing import Any, Final, assert_never

from trainmaster.core.facts import (
    MemberClosed,
    MemberFact,
    MemberStarted,
    MemberStopped,
)
from trainmaster.core.ids import JobId, MemberKey
from trainmaster.core.messages import Assignment, Order
from trainmaster.launcher.agent.disk import MemberRecord
from trainmaster.launcher.agent.ended import (
    closed_by_reboot,
    closed_by_sweep,
    unprepared,
)
from trainmaster.launcher.agent.members import MemberRanks
from trainmaster.launcher.agent.node import Node
from trainmaster.launcher.agent.plan import (
    Close,
    Prepare,
    Start,
    Step,
    Stop,
    Wish,
    heard,
    next_step,
)
from trainmaster.launcher.agent.prepare import place_of, prepare
from trainmaster.launcher.agent.ranks import job_user
from trainmaster.launcher.agent.settings import RETRY_SECONDS
from trainmaster.launcher.backends.model import AttemptKey, Found, SweepProof
from trainmaster.runtime.clock import pause
from trainmaster.runtime.failpoints import FAILPOINTS
from trainmaster.runtime.telemetry import logger

SAVE_SIGNAL: Final = signal.SIGUSR1
"""Asks a rank that has a handler for it to save, before it is told to end."""


class Reconciler:
    """One job on this node."""

    def __init__(self, node: Node, job: JobId) -> None:
        self._node = node
        self._job = job
        self._wish: Wish | None = None
        self._records = node.disk.of_job(job)
        self._ranks: dict[int, MemberRanks] = {}
        self._told: set[int] = set()
        self._news = asyncio.Event()
        self._logger = logger("agent").bind(node=node.key.node, job=job)

    def order(self, assignment: Assignment) -> None:
        """Take an order in; whatever is wanted of a closed attempt, it is closed."""
        self._wish = heard(self._wish, assignment)
        record = self._records.get(assignment.attempt)
        if record is not None and record.closed is not None:
            self._say(assignment.attempt, record.closed)
        self._news.set()

    def adopt(self, found: Sequence[Found]) -> None:
        """Take over what an earlier agent left, and say again what it had said."""
        for attempt, record in tuple(self._records.items()):
            if not record.told:
                ranks = [f for f in found if f.key.attempt == self._key(attempt)]
                self._take_over(attempt, record, ranks)

    async def run(self) -> None:
        """Work until nothing of the job is left to do or to say."""
        while True:
            self._news.clear()
            step = next_step(self._wish, self._records)
            if step is not None:
                await self._carry_out(step)
            elif self._told:
                await self._forget(self._told.pop())
            elif self._records and all(r.told for r in self._records.values()):
                return
            else:
                await self._news.wait()

    # ------------------------------------------------------------------------- steps

    async def _carry_out(self, step: Step) -> None:
        """Do one step, unless news ask for another one meanwhile."""
        action = asyncio.create_task(self._try(step))
        news = asyncio.create_task(self._other_news(step))
        try:
            await asyncio.wait({action, news}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (action, news):
                task.cancel()
            await asyncio.wait({action, news})
        if not action.cancelled():
            action.result()

    async def _other_news(self, step: Step) -> None:
        """Wait until something else than this step should be done."""
        while next_step(self._wish, self._records) == step:
            self._news.clear()
            await self._news.wait()

    async def _try(self, step: Step) -> None:
        """Do one step; what this node refuses for the moment is tried again."""
        try:
            await self._do(step)
        except OSError as error:
            self._logger.warning("step_failed", step=str(step), error=str(error))
            await pause(RETRY_SECONDS)

    async def _do(self, step: Step) -> None:
        self._logger.info("step", step=type(step).__name__, attempt=step.attempt)
        match step:
            case Prepare():
                await self._prepare(step)
            case Start():
                await self._start(step)
            case Stop():
                await self._stop(step)
            case Close():
                await self._close(step)
            case _:
                assert_never(step)

    async def _prepare(self, step: Prepare) -> None:
        order = self._wanted(step.attempt)
        event = await prepare(self._node, self._job, order)
        self._keep(step.attempt, assignment=order, prepared=event)
        self._say(step.attempt, event)

    async def _start(self, step: Start) -> None:
        order = self._wanted(step.attempt)
        record = self._records.get(step.attempt)
        prepared = record.prepared if record else None
        if prepared is None or prepared.failure is not None or order.spec is None:
            event = unprepared(step.attempt)
        else:
            self._keep(step.attempt, assignment=order)
            event = await self._spawn(order)
        self._keep(step.attempt, assignment=order, started=event)
        self._say(step.attempt, event)

    async def _spawn(self, order: Assignment) -> MemberStarted:
        spec = order.spec
        place = await place_of(self._node, job_user(spec.user) if spec else None)
        return await self._ranks_of(order).start(order, place)

    async def _stop(self, step: Stop) -> None:
        proof = await self._end(step)
        event = MemberStopped(killed=bool(proof.killed))
        self._keep(step.attempt, stopped=event)
        self._say(step.attempt, event)

    async def _close(self, step: Close) -> None:
        proof = await self._end(step)
        if not proof.clean:
            detail = proof.detail
            self._logger.warning("not_clean", attempt=step.attempt, detail=detail)
            await pause(RETRY_SECONDS)
            return
        event = closed_by_sweep(self._node.key.node, proof)
        self._keep(step.attempt, closed=event)
        self._node.ports.release(self._key(step.attempt))
        self._say(step.attempt, event)

    async def _end(self, step: Stop | Close) -> SweepProof:
        """Go through the stop ladder, and wait until every end was said."""
        backend, key = self._node.backend, self._key(step.attempt)
        backend.save_signal(key, SAVE_SIGNAL)
        proof = await backend.stop(key, grace_seconds=step.grace_seconds)
        ranks = self._ranks.get(step.attempt)
        if ranks is not None:
            found = await asyncio.to_thread(backend.find)
            # also those of a start that was interrupted
            here = [each for each in found if each.key.attempt == key]
            ranks.adopt(self._records[step.attempt].assignment, here)
            await ranks.all_ended()
        return proof

    async def _forget(self, attempt: int) -> None:
        """Keep only that the attempt is closed, now that the log knows it.

        The backend's own mark goes only when ours would survive a power cut.
        """
        key, order = self._key(attempt), Assignment(attempt=attempt, order=Order.CLOSE)
        known = self._records[attempt]
        record = known.model_copy(update={"assignment": order, "told": True})
        try:
            await asyncio.to_thread(self._node.disk.save, key, record)
            FAILPOINTS.reach("agent.before_forget")
            await asyncio.to_thread(self._node.backend.forget, key)
        except OSError as error:
            self._logger.warning("not_forgotten", attempt=attempt, error=str(error))
            self._told.add(attempt)
            await pause(RETRY_SECONDS)
            return
        self._records[attempt] = record
        ranks = self._ranks.pop(attempt, None)
        if ranks is not None:
            await ranks.close()

    # --------------------------------------------------------------- what is known

    def _take_over(
        self, attempt: int, record: MemberRecord, found: Sequence[Found]
    ) -> None:
        node = self._node
        if record.boot_id != node.boot_id:
            found = [each for each in found if each.exit is not None]
        if found:
            self._ranks_of(record.assignment).adopt(record.assignment, found)
        if record.boot_id != node.boot_id and record.closed is None:
            event = closed_by_reboot(
                node.key.node, before=record.boot_id, now=node.boot_id
            )
            self._keep(attempt, closed=event)
        elif record.prepared is not None and record.closed is None:
            node.ports.adopt(self._key(attempt), record.prepared.port)
        record = self._records[attempt]
        for said in (record.prepared, record.started, record.stopped, record.closed):
            if said is not None:
                self._say(attempt, said)

    def _ranks_of(self, order: Assignment) -> MemberRanks:
        ranks = self._ranks.get(order.attempt)
        if ranks is None:
            ranks = MemberRanks(self._node, self._job, order)
            self._ranks[order.attempt] = ranks
        return ranks

    def _wanted(self, attempt: int) -> Assignment:
        """Return the order that asks for something about an attempt."""
        wish = self._wish
        if wish is not None and attempt in wish.closes:
            return wish.closes[attempt]
        if wish is not None and wish.highest.attempt == attempt:
            return wish.highest
        return self._records[attempt].assignment

    def _keep(self, attempt: int, **changes: Any) -> None:
        """Change an attempt's record, on disk first."""
        before = self._records.get(attempt) or MemberRecord(
            boot_id=self._node.boot_id, assignment=self._wanted(attempt)
        )
        after = before.model_copy(update=changes)
        FAILPOINTS.reach("agent.before_record")
        self._node.disk.save(self._key(attempt), after)
        FAILPOINTS.reach("agent.after_record")
        self._records[attempt] = after

    def _say(self, attempt: int, event: MemberFact) -> None:
        def told() -> None:
            self._told.add(attempt)
            self._news.set()

        key = MemberKey(*self._node.key, self._job, attempt)
        then = told if isinstance(event, MemberClosed) else None
        self._node.reporter.say(key, event, then=then)

    def _key(self, attempt: int) -> AttemptKey:
        return AttemptKey(job=self._job, number=attempt)
