"""Decides what a member's ranks are: programs, environments, files. Pure.

Everything follows from the assignment alone, so that a restarted agent finds the same
files again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from trainmaster.core.ids import JobId
from trainmaster.core.messages import Assignment, StartDetails
from trainmaster.core.spec import JobSpec, Launch, RunAs
from trainmaster.launcher.agent.environment import (
    BASE_PATH,
    Directories,
    EnvironmentRequest,
    LaunchStyle,
    log_file,
    rank_environment,
)
from trainmaster.launcher.backends.model import AttemptKey, JobUser, RankKey, RankSpec

METRICS_VARIABLE: Final = "TM_METRICS_FILE"
_STYLES: Final[Mapping[Launch, LaunchStyle]] = {
    Launch.UNSPECIFIED: LaunchStyle.PER_RANK,
    Launch.PER_RANK: LaunchStyle.PER_RANK,
    Launch.ONCE_PER_NODE: LaunchStyle.ONCE_PER_NODE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What this node adds to what the assignment says."""

    home: str = "/"
    network_interface: str = ""


def job_user(user: RunAs) -> JobUser | None:
    """Name whom to act for; None is the agent's own user, when none was named."""
    if user == RunAs():
        return None
    return JobUser(uid=user.uid, gid=user.gid, groups=user.groups)


def work_directory(spec: JobSpec) -> str:
    """Say where the ranks begin."""
    return spec.work_directory or spec.output_directory


def search_path(spec: JobSpec) -> str:
    """Say where a program without a slash is looked for."""
    return spec.env.get("PATH", BASE_PATH)


def rank_specs(job: JobId, assignment: Assignment, place: Place) -> list[RankSpec]:
    """Build every rank of a member; raises ReservedVariableError."""
    spec = assignment.spec or JobSpec()
    attempt = AttemptKey(job=job, number=assignment.attempt)
    slot = assignment.slot
    return [
        RankSpec(
            key=RankKey(attempt=attempt, rank=slot.first_rank + local),
            argv=spec.command,
            environment=rank_environment(_request(job, assignment, place, local)),
            work_directory=Path(work_directory(spec)),
            log=Path(
                log_file(
                    spec.output_directory,
                    attempt=assignment.attempt,
                    rank=slot.first_rank + local,
                )
            ),
            user=job_user(spec.user),
        )
        for local in range(slot.ranks)
    ]


def _request(
    job: JobId, assignment: Assignment, place: Place, local: int
) -> EnvironmentRequest:
    spec = assignment.spec or JobSpec()
    start = assignment.start or StartDetails()
    restore = start.restore
    return EnvironmentRequest(
        job_id=job,
        job_name=spec.name,
        team=assignment.team,
        attempt=assignment.attempt,
        spec_digest=assignment.spec_digest,
        launch=_STYLES[spec.launch],
        master_address=start.master_address,
        master_port=start.master_port,
        node_addresses=start.addresses,
        node_rank=start.node_rank,
        rank=assignment.slot.first_rank + local,
        local_rank=local,
        processes_per_node=assignment.slot.ranks,
        devices=tuple(map(str, assignment.slot.accelerators)),
        directories=_directories(spec, place),
        user_name=spec.user.name,
        resume_from=restore.path if restore else "",
        resume_step=restore.step if restore else 0,
        network_interface=place.network_interface,
        job_variables=spec.env,
    )


def _directories(spec: JobSpec, place: Place) -> Directories:
    output = PurePosixPath(spec.output_directory)
    return Directories(
        output=spec.output_directory,
        checkpoint=spec.checkpoint.directory,
        data=spec.data_directory,
        scratch=str(output / "scratch"),
        home=place.home,
    )
