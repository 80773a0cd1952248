"""Reads what this node should do, and hands it to one reconciler for each job.

ASSIGN is read from its beginning at every start, so that all last values are seen
again. A missing assignment is never an order: when the stream is emptied or made anew,
whatever runs goes on.
"""

import asyncio
import contextlib
from collections.abc import Sequence

from trainmaster.core import subjects
from trainmaster.core.envelope import Raw
from trainmaster.core.errors import (
    InvalidTokenError,
    LogLostError,
    TrainmasterError,
)
from trainmaster.core.ids import JobId, NodeKey, token
from trainmaster.core.messages import Assignment
from trainmaster.launcher.agent.node import Node
from trainmaster.launcher.agent.reconcile import Reconciler
from trainmaster.launcher.agent.settings import HEALTH_SECONDS, RETRY_SECONDS
from trainmaster.launcher.backends.model import Found
from trainmaster.runtime.clock import pause
from trainmaster.runtime.log import Log
from trainmaster.runtime.permissions import agent_name
from trainmaster.runtime.reader import Place, StreamReader, Subscribed
from trainmaster.runtime.telemetry import logger

_READ_MAX = 500


class Jobs:
    """The jobs this node has something to do for."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._by_id: dict[JobId, Reconciler] = {}
        self._logger = logger("agent").bind(node=node.key.node)

    def __len__(self) -> int:
        """Count the jobs that are not finished here."""
        return len(self._by_id)

    def adopt(self, found: Sequence[Found]) -> None:
        """Take over everything an earlier agent left unfinished."""
        for job in self._node.disk.unfinished_jobs():
            self._reconciler(job).adopt(found)
        for attempt in {each.key.attempt for each in found}:
            record = self._node.disk.of_job(attempt.job).get(attempt.number)
            if record is not None and record.told:
                self._node.backend.forget(attempt)

    def order(self, raw: Raw) -> None:
        """Hand an assignment on; one that cannot be read is no order."""
        try:
            _, job = subjects.parse_assign(raw.subject)
            token("job", job)
            assignment = Assignment.from_json(raw.body)
        except (ValueError, InvalidTokenError) as error:
            self._logger.warning(
                "assignment_unreadable", subject=raw.subject, error=str(error)
            )
            return
        if assignment.attempt > 0 and assignment.order:
            self._reconciler(job).order(assignment)

    def _reconciler(self, job: JobId) -> Reconciler:
        reconciler = self._by_id.get(job)
        if reconciler is None:
            reconciler = self._by_id[job] = Reconciler(self._node, job)
            self._node.tasks.create_task(self._work(job, reconciler), name=job)
        return reconciler

    async def _work(self, job: JobId, reconciler: Reconciler) -> None:
        await reconciler.run()
        del self._by_id[job]


async def follow(node: Node, log: Log, jobs: Jobs) -> None:
    """Read assignments until cancelled, however often the stream is lost."""
    while True:
        wake = asyncio.Event()
        reader = StreamReader(log, _subscribed(node.key), wake=wake)
        reader.start(Place())
        try:
            await _read(reader, wake, jobs)
        except LogLostError as error:
            logger("agent").warning("assignments_lost", error=str(error))
        finally:
            await reader.close()
        await pause(RETRY_SECONDS)


def _subscribed(key: NodeKey) -> Subscribed:
    return Subscribed(
        stream=subjects.ASSIGN,
        filters=(subjects.assignments(key),),
        name=agent_name(key),
    )


async def _read(reader: StreamReader, wake: asyncio.Event, jobs: Jobs) -> None:
    while True:
        if not reader.healthy and not await _reopened(reader):
            await pause(RETRY_SECONDS)
            continue
        for raw in reader.take(_READ_MAX):
            jobs.order(raw)
        await reader.replenish()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(HEALTH_SECONDS):
                await wake.wait()
        wake.clear()


async def _reopened(reader: StreamReader) -> bool:
    try:
        await reader.refresh()
    except LogLostError:
        raise
    except TrainmasterError as error:
        logger("agent").warning("assignments_unreadable", error=str(error))
        return False
    return True
