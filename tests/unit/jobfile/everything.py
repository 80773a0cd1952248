"""A job file that says everything, and the spec it means."""

from typing import Final

from trainmaster.core.spec import (
    AfterSpec,
    ArraySpec,
    BackendSpec,
    CheckpointSpec,
    ContainerSpec,
    DataSpec,
    EnvironmentSpec,
    JobSpec,
    KeepSpec,
    MetricGoal,
    NodeRange,
    NotifySpec,
    ObserveSpec,
    RetryBudgets,
    RolloutStage,
    SourceSpec,
    SuccessSpec,
)
from trainmaster.jobfile.installation import Site
from trainmaster.jobfile.schema import PLAIN_FIELDS
from trainmaster.jobfile.table import Acts, Field, Table

DIRECTORY: Final = "/home/ada/lm"
SUM: Final = f"blake3:{'0a' * 32}"


def _refused(table: Table, prefix: str = "") -> set[str]:
    def inner(field: Field) -> set[str]:
        return _refused(field.kind.fields, f"{prefix}{field.name}.")

    mine = {f"{prefix}{f.name}" for f in table if f.acts is Acts.REFUSED}
    return mine.union(*(inner(field) for field in table))


SITE: Final = Site(storage_root="/stores")
READY: Final = Site(storage_root="/stores", offers=frozenset(_refused(PLAIN_FIELDS)))
"""An installation that acts on every field."""

EVERYTHING: Final = f"""\
$schema: ./job-file.schema.json
name: Ünïcode 模型 run
team: vision
project: слова
labels: {{stage: dev, run: 7}}
script: |
  #!/usr/bin/env bash
  python train.py
launch: per_rank
work_directory:
  in_place: src
  git: https://git.example/lm.git
  revision: main
  directory: train
  credentials: secret://vault/git
setup: [pip install ., make data]
env: {{LR: 1e-3, PATH: /opt/bin}}
secrets: {{HF_TOKEN: secret://vault/hf}}
parameters: {{batch_size: 64, schedule: cosine}}
seed: 0
venv: .venv
conda: train
modules: [cuda/12.4, nccl]
container:
  image: registry.example/train:tag
  runtime: podman
  credentials: secret://vault/registry
  mounts: ["/scratch:/scratch:ro"]
pool: gpu
nodes: {{min: 2, max: 8, batch: per_rank}}
accelerators_per_node: 8
accelerator_types: [h100, a100]
ranks_per_node: 4
cpus_per_node: 64
memory_per_node: 512Gi
shm_per_node: 64G
disk_per_node: 1Ti
topology: rack
backend:
  slurm: {{account: lm, gpus-per-node: 8}}
  kubernetes:
    namespace: lm
    tolerations: [{{key: gpu, operator: Exists}}]
    priority: 3
data:
  train: {{from: storage://sets/words/v3, checksum: "{SUM}", split: train}}
  scratch: {{from: /scratch, manifest: /scratch/manifest.json, read_only: false}}
weights: {{base: storage://models/base}}
data_directory: storage://sets
output_directory: /results/{{job}}
checkpoint:
  directory: storage://ckpt/{{job}}
  resume_from: /old/step-10
  resume: last
  interval_steps: 500
  keep:
    {{last: 3, every_steps: 1000, best: 2, metric: loss, mode: max, younger_than: 2d}}
  verify: sampled
success:
  step: 1000
  checkpoint: true
  outputs: [model.bin]
  metric: {{name: loss, at_most: 2.5}}
on: {{nan: rollback, hang: restart}}
retries: {{user: 0, infrastructure: 5, node: 3, out_of_memory: 1, hold: 5m}}
time_limit: 2h
total_limit: 1d
stop_grace: 30
priority: high
hold: true
array: 0-99:3%8
after: {{ok: [first], any: [second], failed: [third]}}
rollout:
  - {{name: smoke, nodes: 1, steps: 10, time_limit: 5m, command: [./smoke]}}
notify:
  - {{to: secret://vault/slack, on: [failed, succeeded]}}
observe:
  metrics_interval: 30
  metrics_interval_steps: 20
  export_interval: 60
  health_interval: 15
  log_level: info
"""
WORK: Final = f"{DIRECTORY}/src"
SPEC: Final = JobSpec(
    name="Ünïcode 模型 run",
    project="слова",
    labels={"stage": "dev", "run": "7"},
    command=("/usr/bin/env", "bash", "-c", "python train.py\n"),
    work_directory=WORK,
    env={
        "LR": "1e-3",
        "PATH": f"{WORK}/.venv/bin:/opt/bin",
        "VIRTUAL_ENV": f"{WORK}/.venv",
        "PARAM_BATCH_SIZE": "64",
        "PARAM_SCHEDULE": "cosine",
        "PARAM_SEED": "0",
        "PARAM_CHECKPOINT_INTERVAL_STEPS": "500",
        "PARAM_METRICS_INTERVAL_STEPS": "20",
        "PARAM_LOG_LEVEL": "info",
        "DATA_TRAIN": "/stores/sets/words/v3",
        "DATA_SCRATCH": "/scratch",
        "WEIGHTS_BASE": "/stores/models/base",
    },
    pool="gpu",
    nodes=2,
    accelerators_per_node=8,
    ranks_per_node=4,
    cpus_per_node=64,
    memory_bytes_per_node=512 * 2**30,
    checkpoint=CheckpointSpec(
        directory="/stores/ckpt/{job}",
        resume_from="/old/step-10",
        interval_steps=500,
        verify="sampled",
        keep=KeepSpec(
            last=3,
            every_steps=1000,
            best=2,
            metric="loss",
            mode="max",
            age_seconds=172_800.0,
        ),
    ),
    output_directory="/results/{job}",
    data_directory="/stores/sets",
    success=SuccessSpec(
        step=1000,
        checkpoint=True,
        outputs=(f"{WORK}/model.bin",),
        metric=MetricGoal(name="loss", at_most=2.5),
    ),
    retries_max=5,
    time_limit_seconds=7200.0,
    total_limit_seconds=86_400.0,
    stop_grace_seconds=30.0,
    priority=100,
    hold=True,
    node_range=NodeRange(min=2, max=8, batch="per_rank"),
    accelerator_types=("h100", "a100"),
    shm_bytes_per_node=64 * 10**9,
    disk_bytes_per_node=2**40,
    topology="rack",
    backend=BackendSpec(
        slurm={"account": "lm", "gpus-per-node": "8"},
        kubernetes_json='{"namespace": "lm", "tolerations": '
        '[{"key": "gpu", "operator": "Exists"}], "priority": 3}',
    ),
    source=SourceSpec(
        git="https://git.example/lm.git",
        revision="main",
        directory="train",
        credentials="secret://vault/git",
    ),
    setup=("pip install .", "make data"),
    environment=EnvironmentSpec(
        container=ContainerSpec(
            image="registry.example/train:tag",
            runtime="podman",
            credentials="secret://vault/registry",
            mounts=("/scratch:/scratch:ro",),
        ),
        conda="train",
        modules=("cuda/12.4", "nccl"),
        venv=f"{WORK}/.venv",
    ),
    parameters={"batch_size": "64", "schedule": "cosine"},
    secrets={"HF_TOKEN": "secret://vault/hf"},
    seed=0,
    data=(
        DataSpec(
            name="train",
            source="storage://sets/words/v3",
            path="/stores/sets/words/v3",
            checksum=SUM,
            split="train",
        ),
        DataSpec(
            name="scratch",
            source="/scratch",
            path="/scratch",
            manifest="/scratch/manifest.json",
            writable=True,
        ),
    ),
    weights=(
        DataSpec(
            name="base", source="storage://models/base", path="/stores/models/base"
        ),
    ),
    on={"nan": "rollback", "hang": "restart"},
    retry=RetryBudgets(
        user=0, infrastructure=5, node=3, out_of_memory=1, hold_seconds=300.0
    ),
    priority_class="high",
    array=ArraySpec(first=0, last=99, step=3, parallel_max=8),
    after=AfterSpec(succeeded=("first",), ended=("second",), failed=("third",)),
    notify=(NotifySpec(to="secret://vault/slack", on=("failed", "succeeded")),),
    rollout=(
        RolloutStage(
            name="smoke",
            command=("./smoke",),
            nodes=1,
            steps=10,
            time_limit_seconds=300.0,
        ),
    ),
    observe=ObserveSpec(
        metrics_interval_seconds=30.0,
        metrics_interval_steps=20,
        export_interval_seconds=60.0,
        health_interval_seconds=15.0,
        log_level="info",
    ),
)
