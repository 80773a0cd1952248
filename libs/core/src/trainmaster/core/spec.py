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


class NodeRange(Message):
    """How few and how many nodes an elastic job can use; 0 for a fixed number."""

    min: Int32 = 0
    max: Int32 = 0
    batch: str = ""


class BackendSpec(Message):
    """What is passed through to a pool's backend as it is."""

    slurm: dict[str, str] = Field(default_factory=dict)
    kubernetes_json: str = ""


class SourceSpec(Message):
    """Where the code comes from; with neither archive nor git it is used in place."""

    archive: str = ""
    exclude: tuple[str, ...] = ()
    git: str = ""
    revision: str = ""
    directory: str = ""
    credentials: str = ""


class ContainerSpec(Message):
    """The image the ranks run in, "" for none; credentials only by reference."""

    image: str = ""
    runtime: str = ""
    credentials: str = ""
    mounts: tuple[str, ...] = ()


class EnvironmentSpec(Message):
    """What is there before the command runs."""

    container: ContainerSpec = ContainerSpec()
    conda: str = ""
    modules: tuple[str, ...] = ()
    venv: str = ""


class DataSpec(Message):
    """Something the training reads: where it is said to be and where nodes see it."""

    name: str = ""
    source: str = ""
    path: str = ""
    checksum: str = ""
    manifest: str = ""
    writable: bool = False
    split: str = ""


class KeepSpec(Message):
    """Which checkpoints stay; what any rule keeps is kept. All 0: every one."""

    last: Int32 = 0
    every_steps: Int32 = 0
    best: Int32 = 0
    metric: str = ""
    mode: str = ""
    age_seconds: float = 0.0


class CheckpointSpec(Message):
    """Where the training saves, as paths its nodes see."""

    directory: str = ""
    resume_from: str = ""
    interval_steps: Int32 = 0
    verify: str = ""
    keep: KeepSpec = KeepSpec()


class MetricGoal(Message):
    """A bound that a metric's last value must keep."""

    name: str = ""
    at_least: float | None = None
    at_most: float | None = None


class SuccessSpec(Message):
    """The evidence SUCCEEDED needs; with nothing declared, exit 0 of all ranks."""

    step: Int32 = 0
    checkpoint: bool = False
    outputs: tuple[str, ...] = ()
    metric: MetricGoal = MetricGoal()


class RetryBudgets(Message):
    """How often each kind of failure is tried again; -1 is as `retries_max`."""

    user: Int32 = -1
    infrastructure: Int32 = -1
    node: Int32 = -1
    out_of_memory: Int32 = -1
    hold_seconds: float = 600.0


class ArraySpec(Message):
    """One job many times: the indexes, and how many at once (0: any number)."""

    first: Int32 = 0
    last: Int32 = 0
    step: Int32 = 0
    parallel_max: Int32 = 0


class AfterSpec(Message):
    """Jobs this one waits for, by how each has to end."""

    succeeded: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


class NotifySpec(Message):
    """Who is told what."""

    to: str = ""
    on: tuple[str, ...] = ()


class RolloutStage(Message):
    """One step of the ladder to the whole job; it must pass before the next."""

    name: str = ""
    command: tuple[str, ...] = ()
    nodes: Int32 = 0
    steps: Int32 = 0
    time_limit_seconds: float = 0.0


class ObserveSpec(Message):
    """How closely the job is watched; 0 leaves it to the installation."""

    metrics_interval_seconds: float = 0.0
    metrics_interval_steps: Int32 = 0
    export_interval_seconds: float = 0.0
    health_interval_seconds: float = 0.0
    log_level: str = ""


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
    node_range: NodeRange = NodeRange()
    accelerator_types: tuple[str, ...] = ()
    shm_bytes_per_node: Int64 = 0
    disk_bytes_per_node: Int64 = 0
    topology: str = ""
    backend: BackendSpec = BackendSpec()
    source: SourceSpec = SourceSpec()
    setup: tuple[str, ...] = ()
    environment: EnvironmentSpec = EnvironmentSpec()
    parameters: dict[str, str] = Field(default_factory=dict)
    secrets: dict[str, str] = Field(default_factory=dict)
    seed: Int64 = -1
    data: tuple[DataSpec, ...] = ()
    weights: tuple[DataSpec, ...] = ()
    on: dict[str, str] = Field(default_factory=dict)
    retry: RetryBudgets = RetryBudgets()
    priority_class: str = ""
    array: ArraySpec = ArraySpec()
    after: AfterSpec = AfterSpec()
    notify: tuple[NotifySpec, ...] = ()
    rollout: tuple[RolloutStage, ...] = ()
    observe: ObserveSpec = ObserveSpec()
    dialect: str = ""
    template: str = ""
    overlay: str = ""

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
