"""Decides what a rank finds in its environment.

Lowest first: a minimal base, the pool's defaults, the job's own variables, the names
reserved for us. A job that gives a reserved name another value is refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Final

from trainmaster.core.errors import PermanentError

BASE_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class ReservedVariableError(PermanentError):
    """A job sets a variable that is ours to set."""

    def __init__(self, *, name: str, given: str, ours: str) -> None:
        self.name = name
        super().__init__(
            f"env {name}={given!r} is reserved and would be {ours!r}; "
            f"remove {name} from `env`"
        )


class LaunchStyle(StrEnum):
    """Who starts the ranks, and so who numbers them."""

    PER_RANK = "per_rank"
    ONCE_PER_NODE = "once_per_node"
    TORCHRUN = "torchrun"


@dataclass(frozen=True, slots=True, kw_only=True)
class Directories:
    """Where the job's things are, as the rank sees them; "" for none."""

    output: str
    checkpoint: str = ""
    data: str = ""
    scratch: str = ""
    home: str = "/"


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentRequest:
    """All that a rank's environment follows from.

    `devices` are the node's share for this attempt: every rank of a node sees all of
    them and picks by LOCAL_RANK, as frameworks expect. `processes_per_node` is what
    runs on a node in the end, whoever starts it. Step 0 and no path: nothing to resume.
    """

    job_id: str
    job_name: str
    team: str
    attempt: int
    spec_digest: str
    launch: LaunchStyle
    master_address: str
    master_port: int
    node_addresses: tuple[str, ...]
    node_rank: int
    rank: int
    local_rank: int
    processes_per_node: int
    devices: tuple[str, ...]
    directories: Directories
    user_name: str = ""
    resume_from: str = ""
    resume_step: int = 0
    deadline_unix_seconds: int | None = None
    device_variable: str = "CUDA_VISIBLE_DEVICES"
    network_interface: str = ""
    job_variables: Mapping[str, str] = field(default_factory=dict[str, str])


def rank_environment(request: EnvironmentRequest) -> dict[str, str]:
    """Build the complete environment of one rank; raises ReservedVariableError."""
    reserved = (
        _identity(request)
        | _rendezvous(request)
        | _places(request)
        | _numbers(request)
        | _torchrun(request)
    )
    given = request.job_variables
    for name, ours in reserved.items():
        if given.get(name, ours) != ours:
            raise ReservedVariableError(name=name, given=given[name], ours=ours)
    return {**_base(request), **_defaults(request), **given, **reserved}


def log_file(output: str, *, attempt: int, rank: int) -> str:
    """Say where a rank's output goes."""
    return str(_logs(output, attempt) / f"rank-{rank}.log")


def _logs(output: str, attempt: int) -> PurePosixPath:
    return PurePosixPath(output) / "logs" / f"attempt-{attempt}"


def _base(request: EnvironmentRequest) -> dict[str, str]:
    """Set what any program expects to find."""
    user = request.user_name
    names = {"USER": user, "LOGNAME": user} if user else {}
    home = request.directories.home
    return {"PATH": BASE_PATH, "HOME": home, "LANG": "C.UTF-8", **names}


def _defaults(request: EnvironmentRequest) -> dict[str, str]:
    """Set what the job may set otherwise."""
    tracking = {"WANDB_RUN_ID": request.job_id, "WANDB_RESUME": "allow"}
    interface = request.network_interface
    if not interface:
        return tracking
    names = ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME")
    return tracking | dict.fromkeys(names, interface)


def _identity(request: EnvironmentRequest) -> dict[str, str]:
    deadline = request.deadline_unix_seconds
    return {
        "TM_JOB_ID": request.job_id,
        "TM_JOB_NAME": request.job_name,
        "TM_TEAM": request.team,
        "TM_ATTEMPT": str(request.attempt),
        "TM_SPEC_DIGEST": request.spec_digest,
        "TM_DEADLINE": "" if deadline is None else str(deadline),
        "TM_RESUME_FROM": request.resume_from,
        "TM_RESUME_STEP": str(request.resume_step),
    }


def _rendezvous(request: EnvironmentRequest) -> dict[str, str]:
    """Say how ranks find each other and their devices; addresses one a line."""
    return {
        "MASTER_ADDR": request.master_address,
        "MASTER_PORT": str(request.master_port),
        "NNODES": str(len(request.node_addresses)),
        "NODE_RANK": str(request.node_rank),
        "TM_NODE_IPS": "\n".join(request.node_addresses),
        "TM_GPUS_PER_NODE": str(len(request.devices)),
        request.device_variable: ",".join(request.devices),
    }


def _places(request: EnvironmentRequest) -> dict[str, str]:
    directories = request.directories
    logs = _logs(directories.output, request.attempt)
    return {
        "TM_OUTPUT_DIR": directories.output,
        "TM_CHECKPOINT_DIR": directories.checkpoint,
        "TM_DATA_DIR": directories.data,
        "TM_SCRATCH_DIR": directories.scratch,
        "TM_METRICS_FILE": str(logs / f"rank-{request.rank}.metrics.jsonl"),
        "TORCHELASTIC_ERROR_FILE": str(logs / f"rank-{request.rank}.error.json"),
        "PYTHONUNBUFFERED": "1",
    }


def _numbers(request: EnvironmentRequest) -> dict[str, str]:
    """Give the ranks numbers, but only where it is we who start each of them."""
    if request.launch is not LaunchStyle.PER_RANK:
        return {}
    world = len(request.node_addresses) * request.processes_per_node
    return {
        "RANK": str(request.rank),
        "LOCAL_RANK": str(request.local_rank),
        "WORLD_SIZE": str(world),
        "LOCAL_WORLD_SIZE": str(request.processes_per_node),
    }


def _torchrun(request: EnvironmentRequest) -> dict[str, str]:
    """Give torchrun the options it reads from the environment."""
    if request.launch is not LaunchStyle.TORCHRUN:
        return {}
    return {
        "PET_NNODES": str(len(request.node_addresses)),
        "PET_NODE_RANK": str(request.node_rank),
        "PET_NPROC_PER_NODE": str(request.processes_per_node),
        "PET_MASTER_ADDR": request.master_address,
        "PET_MASTER_PORT": str(request.master_port),
    }
