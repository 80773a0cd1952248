"""Decides what every node is told about a job: ASSIGN as a function of job state. Pure.

| job state | nodes of the current attempt | nodes that still owe a proof |
|---|---|---|
| PLACED | prepare | close, of the newest attempt owed |
| STARTING, RUNNING | start | close |
| STOPPING | stop | close |
| all others | close until reclaimed | close |

What is not wanted is purged; an agent never takes an absence for an order.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from trainmaster.core import subjects
from trainmaster.core.decision import Changed
from trainmaster.core.ids import JobId, JobKey, NodeKey
from trainmaster.core.messages import Assignment, Order, StartDetails
from trainmaster.core.record import Job, JobState
from trainmaster.core.values import MemberSlot
from trainmaster.launcher.state import State


def wanted(state: State, owner: str) -> Mapping[str, Assignment]:
    """Say what one job's nodes are told, by subject; nothing of a job that is gone."""
    job = state.jobs.by_id(JobId(owner))
    return {} if job is None else assignments(job)


def owners(state: State, changed: Iterable[Changed] | None) -> Iterable[str]:
    """Name the jobs whose assignments may differ; all of them for None."""
    if changed is None:
        return [key.job for key in state.jobs]
    return {key.job for _, key in changed if isinstance(key, JobKey)}


def owner_of(subject: str) -> str:
    """Name the job a subject belongs to."""
    _, job = subjects.parse_assign(subject)
    return job


def assignments(job: Job) -> dict[str, Assignment]:
    """Say what one job's nodes are told, by subject."""
    by_node = dict(_closing(job))
    order = _ORDERS.get(job.state)
    if order is not None:
        by_node.update(
            (slot.node, order(job, index)) for index, slot in enumerate(job.members)
        )
    return {
        subjects.assign(NodeKey(job.pool, node), job.key.job): assignment
        for node, assignment in by_node.items()
    }


def _closing(job: Job) -> Iterator[tuple[str, Assignment]]:
    """Close what is not reclaimed; per node the newest attempt, which comes last here.

    When that one is reclaimed, the turn of the one before it comes.
    """
    for attempt in sorted(job.unreclaimed):
        for slot in job.unreclaimed[attempt]:
            yield slot.node, _close(job, attempt, slot)


def _close(job: Job, attempt: int, slot: MemberSlot) -> Assignment:
    return Assignment(
        team=job.key.team,
        attempt=attempt,
        order=Order.CLOSE,
        slot=slot,
        grace_seconds=job.spec.stop_grace_seconds,
    )


def _prepare(job: Job, index: int) -> Assignment:
    return Assignment(
        team=job.key.team,
        attempt=job.attempt,
        order=Order.PREPARE,
        spec=job.spec,
        spec_digest=job.spec_digest,
        slot=job.members[index],
    )


def _start(job: Job, index: int) -> Assignment:
    start = job.start
    details = StartDetails(node_rank=index)
    if start is not None:
        details = StartDetails(
            master_address=start.master_address,
            master_port=start.master_port,
            addresses=start.addresses,
            node_rank=index,
            restore=start.restore,
        )
    return _prepare(job, index).model_copy(
        update={"order": Order.START, "start": details}
    )


def _stop(job: Job, index: int) -> Assignment:
    stop = job.stop
    return Assignment(
        team=job.key.team,
        attempt=job.attempt,
        order=Order.STOP,
        slot=job.members[index],
        grace_seconds=stop.grace_seconds if stop else job.spec.stop_grace_seconds,
        stop_cause=stop.cause if stop else "",
    )


_Order = Callable[[Job, int], Assignment]
_ORDERS: Final[Mapping[JobState, _Order]] = {
    JobState.PLACED: _prepare,
    JobState.STARTING: _start,
    JobState.RUNNING: _start,
    JobState.STOPPING: _stop,
}
