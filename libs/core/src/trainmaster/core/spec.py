"""What a user asked for, in the one canonical form every service reads.

Job files and dialects are parsed into this at the edge, once; units are in the names.
"""

import hashlib
import json
from enum import StrEnum
from typing import Final

from pydantic import Field

from trainmaster.core.model import Int32, Int64, Message, UInt32


class Launch(StrEnum):
    """How an attempt's processes are started on a node."""

    UNSPECIFIED = ""
    PER_RANK = "per_rank"
    ONCE_PER_NODE = "once_per_node"


class RunAs(Message):
    """The operating system identity the ranks run under: the submitter's own."""

    uid: UInt32 = 0
    gid: UInt32 = 0
    groups: tuple[UInt32, ...] = ()
    name: str = ""


class CheckpointSpec(Message):
    """Where the training saves, as paths its nodes see."""

    directory: str = ""
    resume_from: str = ""


class SuccessSpec(Message):
    """The evidence SUCCEEDED needs; with nothing declared, exit 0 of all ranks."""

    step: Int32 = 0
    checkpoint: bool = False


class JobSpec(Message):
    """One training job. `accelerators` are whole devices, `cpus` are cores."""

    name: str = ""
    project: str = ""
    labels: dict[str, str] = Field(default_factory=dict)
    command: tuple[str, ...] = ()
    work_directory: str = ""
    env: dict[str, str] = Field(default_factory=dict)
    pool: str = "local"
    nodes: Int32 = 1
    accelerators_per_node: Int32 = 0
    ranks_per_node: Int32 = 1
    cpus_per_node: Int32 = 1
    memory_bytes_per_node: Int64 = 0
    launch: Launch = Launch.PER_RANK
    checkpoint: CheckpointSpec = CheckpointSpec()
    output_directory: str = ""
    data_directory: str = ""
    success: SuccessSpec = SuccessSpec()
    retries_max: Int32 = 3
    time_limit_seconds: float = 0.0
    total_limit_seconds: float = 0.0
    stop_grace_seconds: float = 10.0
    priority: Int32 = 0
    hold: bool = False
    user: RunAs = RunAs()

    @property
    def ranks(self) -> int:
        """The number of ranks of one attempt."""
        return self.nodes * self.ranks_per_node


PRIORITY_CLASSES: Final = {"low": -100, "normal": 0, "high": 100, "critical": 1000}


def spec_digest(spec: JobSpec) -> str:
    """Name a spec by its content: 64 hex digits, equal for equal specs."""
    # Two equal specs may have their labels and variables in different orders.
    canonical = json.dumps(json.loads(spec.to_json()), sort_keys=True)
    return hashlib.sha256(canonical.encode()).hexdigest()
