"""Prepares a member: checks this node, leases a port, collects versions.

What fails is named by check and field, as the user wrote it; the attempt then ends
before anything was started.
"""

import asyncio
import os
import pwd
from collections.abc import Iterator

from trainmaster.core.errors import TrainmasterError
from trainmaster.core.facts import Capacity, CheckFailure, MemberPrepared
from trainmaster.core.ids import JobId
from trainmaster.core.messages import Assignment
from trainmaster.core.spec import JobSpec
from trainmaster.launcher.agent.answers import EXAMINE
from trainmaster.launcher.agent.environment import ReservedVariableError
from trainmaster.launcher.agent.hands import CannotBecomeError, WorkerDiedError
from trainmaster.launcher.agent.node import Node
from trainmaster.launcher.agent.ports import NoPortError
from trainmaster.launcher.agent.preflight import Examination, Examined
from trainmaster.launcher.agent.ranks import (
    Place,
    job_user,
    rank_specs,
    search_path,
    work_directory,
)
from trainmaster.launcher.backends.model import AttemptKey, JobUser


async def prepare(node: Node, job: JobId, assignment: Assignment) -> MemberPrepared:
    """Do all that must be true before a start may be ordered."""
    spec = assignment.spec or JobSpec()
    failure = next(_failures(assignment, node.capacity), None)
    failure = failure or _environment_failure(job, assignment)
    if failure is not None:
        return MemberPrepared(failure=failure)
    try:
        examined = await _examine(node, spec)
        if examined.failure is not None:
            return MemberPrepared(failure=examined.failure)
        attempt = AttemptKey(job=job, number=assignment.attempt)
        port = node.ports.lease(attempt)
    except NoPortError as error:
        return MemberPrepared(failure=_failed("port", "pool ports", error))
    except (CannotBecomeError, WorkerDiedError) as error:
        return MemberPrepared(failure=_failed("user", "user", error))
    return MemberPrepared(
        address=node.address,
        port=port,
        versions={"spec": assignment.spec_digest, **examined.versions},
    )


def _failures(assignment: Assignment, capacity: Capacity) -> Iterator[CheckFailure]:
    """Check what the assignment and the node's capacity show."""
    spec, devices = assignment.spec, assignment.slot.accelerators
    if spec is None:
        yield CheckFailure(check="assignment", field="spec", seen="nothing")
        return
    if devices and max(devices) >= capacity.accelerators:
        yield CheckFailure(
            check="devices",
            field="accelerators_per_node",
            expected=f"device {max(devices)}",
            seen=f"{capacity.accelerators} devices on this node",
        )


def _environment_failure(job: JobId, assignment: Assignment) -> CheckFailure | None:
    try:
        rank_specs(job, assignment, Place())
    except ReservedVariableError as error:
        return _failed("environment", f"env.{error.name}", error)
    return None


def _failed(check: str, field: str, error: TrainmasterError) -> CheckFailure:
    return CheckFailure(check=check, field=field, seen=str(error))


async def _examine(node: Node, spec: JobSpec) -> Examined:
    """Look at files with the eyes of the job's user."""
    directories = {
        "output_directory": spec.output_directory,
        "checkpoint.directory": spec.checkpoint.directory,
    }
    request = Examination(
        command=spec.command,
        search_path=search_path(spec),
        work_directory=work_directory(spec),
        directories={
            field: directory
            for field, directory in directories.items()
            if directory or field == "output_directory"
        },
    )
    user = job_user(spec.user)
    return Examined.from_json(await node.hands.ask(user, EXAMINE, request.to_json()))


async def place_of(node: Node, user: JobUser | None) -> Place:
    """Say what this node adds to a rank's environment."""
    uid = user.uid if user else os.geteuid()
    home = await asyncio.to_thread(_home, uid)
    return Place(home=home, network_interface=node.network_interface)


def _home(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_dir
    except KeyError:
        return "/"  # a user only the cluster knows
