"""Decides which right name somebody meant who wrote a wrong one. Pure."""

from collections.abc import Collection
from difflib import get_close_matches
from typing import Final

_LIKENESS: Final = 0.6
_ELSEWHERE: Final = {
    "accelerators": "accelerators_per_node",
    "accelerator_type": "accelerator_types",
    "args": "command",
    "base_model": "weights",
    "checkpoint_dir": "checkpoint.directory",
    "checkpoint_directory": "checkpoint.directory",
    "checkpoint_interval_steps": "checkpoint.interval_steps",
    "cmd": "command",
    "config": "parameters",
    "cpu": "cpus_per_node",
    "cpus": "cpus_per_node",
    "cwd": "work_directory",
    "data_dir": "data_directory",
    "dataset": "data",
    "datasets": "data",
    "depends_on": "after",
    "dependency": "after",
    "directory": "work_directory",
    "docker": "container",
    "entrypoint": "command",
    "environment": "env",
    "envs": "env",
    "gpu": "accelerators_per_node",
    "gpu_type": "accelerator_types",
    "gpus": "accelerators_per_node",
    "gpus_per_node": "accelerators_per_node",
    "grace": "stop_grace",
    "hyperparameters": "parameters",
    "image": "container.image",
    "keep_last": "checkpoint.keep.last",
    "kubernetes": "backend.kubernetes",
    "max_retries": "retries",
    "max_runtime": "time_limit",
    "mem": "memory_per_node",
    "memory": "memory_per_node",
    "nnodes": "nodes",
    "notifications": "notify",
    "nproc_per_node": "ranks_per_node",
    "num_nodes": "nodes",
    "on_failure": "retries",
    "output_dir": "output_directory",
    "params": "parameters",
    "processes_per_node": "ranks_per_node",
    "queue": "pool",
    "restart": "retries",
    "resume": "checkpoint.resume_from",
    "resume_from": "checkpoint.resume_from",
    "run": "command",
    "schema": "$schema",
    "shm_size": "shm_per_node",
    "slurm": "backend.slurm",
    "tags": "labels",
    "tasks_per_node": "ranks_per_node",
    "time": "time_limit",
    "timeout": "time_limit",
    "variables": "env",
    "virtualenv": "venv",
    "walltime": "time_limit",
    "work_dir": "work_directory",
    "workdir": "work_directory",
    "workers": "nodes",
    "working_dir": "work_directory",
}
"""What other launchers call it."""


def nearest_field(name: str, right: Collection[str], *, inside: str = "") -> str:
    """Name the field that `name` is nearest to, also one of another launcher's.

    `inside` is the group that `name` stands in and that `right` are of.
    """
    known = _ELSEWHERE.get(_plain(name), "")
    if not inside:
        return known or nearest(name, right)
    here = known.removeprefix(f"{inside}.")
    guess = here if here in right else nearest(name, right)
    return f"{inside}.{guess}" if guess else ""


def nearest(word: str, right: Collection[str]) -> str:
    """Name the right word that `word` is nearest to, "" when none is near."""
    plain = _plain(word)
    longer = [each for each in right if plain and each.startswith(plain)]
    if len(longer) == 1:
        return longer[0]
    return next(iter(get_close_matches(plain, right, n=1, cutoff=_LIKENESS)), "")


def _plain(word: str) -> str:
    return word.lower().replace("-", "_")


def did_you_mean(guess: str) -> str:
    """Word a guess as the end of a message."""
    return f". Did you mean `{guess}`?" if guess else ""
