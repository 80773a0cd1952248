"""Decides how a spec reads as a job file; reading that gives the same spec again.

What a field is when nobody says it is left out; paths are where the nodes see them.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from trainmaster.core.spec import DataSpec, JobSpec, RetryBudgets
from trainmaster.jobfile import parts
from trainmaster.jobfile.limits import DEFAULT_POOL, DEFAULT_TEAM, SYSTEM_PATH
from trainmaster.jobfile.writing import size_text, to_yaml

_NO_BUDGET: Final = -1


def canonical_yaml(spec: JobSpec, *, team: str = DEFAULT_TEAM) -> str:
    """Write a spec as a job file."""
    return to_yaml(canonical(spec, team=team))


def canonical(spec: JobSpec, *, team: str = DEFAULT_TEAM) -> dict[str, Any]:
    """Give the fields of the job file that means this spec."""
    every = (
        *_identity(spec, team),
        *_program(spec),
        *_environment(spec),
        *_resources(spec),
        *_files(spec),
        *_conduct(spec),
        *_queue(spec),
    )
    return {name: value for name, value in every if value not in _EMPTY}


_EMPTY: Final[tuple[Any, ...]] = (None, "", (), {}, [])
Pairs = Iterator[tuple[str, Any]]


def _identity(spec: JobSpec, team: str) -> Pairs:
    yield "name", spec.name
    yield "team", "" if team == DEFAULT_TEAM else team
    yield "project", spec.project
    yield "labels", spec.labels


def _program(spec: JobSpec) -> Pairs:
    yield "command", list(spec.command)
    yield "launch", spec.launch.value
    yield "work_directory", _code(spec)
    yield "setup", list(spec.setup)
    yield "env", _own_variables(spec)
    yield "secrets", spec.secrets
    yield "parameters", spec.parameters
    yield "seed", None if spec.seed < 0 else spec.seed


def _code(spec: JobSpec) -> Any:
    source = _said(spec.source)
    return (
        {"in_place": spec.work_directory, **source} if source else spec.work_directory
    )


def _own_variables(spec: JobSpec) -> dict[str, str]:
    """Leave out the variables that other fields make."""
    made = {variable for _, variable, _ in parts.parameters(_of_parameters(spec))}
    made |= {f"DATA_{each.name.upper()}" for each in spec.data}
    made |= {f"WEIGHTS_{each.name.upper()}" for each in spec.weights}
    env = {name: value for name, value in spec.env.items() if name not in made}
    venv = spec.environment.venv
    if venv:
        del env["VIRTUAL_ENV"]
        rest = env.pop("PATH").removeprefix(f"{venv}/bin:")
        env |= {} if rest == SYSTEM_PATH else {"PATH": rest}
    return env


def _of_parameters(spec: JobSpec) -> dict[str, Any]:
    return {
        "parameters": spec.parameters,
        "checkpoint": _said(spec.checkpoint),
        "observe": _said(spec.observe),
        **({"seed": spec.seed} if spec.seed >= 0 else {}),
    }


def _environment(spec: JobSpec) -> Pairs:
    environment = spec.environment
    yield "venv", environment.venv
    yield "conda", environment.conda
    yield "modules", list(environment.modules)
    yield "container", _said(environment.container)


def _resources(spec: JobSpec) -> Pairs:
    elastic = _said(spec.node_range)
    yield "pool", "" if spec.pool == DEFAULT_POOL else spec.pool
    yield "nodes", elastic or (None if spec.nodes == 1 else spec.nodes)
    yield "accelerators_per_node", spec.accelerators_per_node or None
    yield "accelerator_types", list(spec.accelerator_types)
    yield "ranks_per_node", spec.ranks_per_node
    yield "cpus_per_node", None if spec.cpus_per_node == 1 else spec.cpus_per_node
    for name in ("memory", "shm", "disk"):
        size: int = getattr(spec, f"{name}_bytes_per_node")
        yield f"{name}_per_node", size_text(size) if size else ""
    yield "topology", spec.topology
    foreign = spec.backend.kubernetes_json
    kubernetes = {"kubernetes": json.loads(foreign)} if foreign else {}
    slurm = {"slurm": spec.backend.slurm} if spec.backend.slurm else {}
    yield "backend", {**slurm, **kubernetes}


def _files(spec: JobSpec) -> Pairs:
    yield "data", {each.name: _source(each) for each in spec.data}
    yield "weights", {each.name: _source(each) for each in spec.weights}
    yield "data_directory", spec.data_directory
    yield "output_directory", spec.output_directory
    checkpoint = _said(spec.checkpoint)
    if "keep" in checkpoint:
        keep = checkpoint["keep"]
        checkpoint["keep"] = _renamed(keep, {"age_seconds": "younger_than"})
    yield "checkpoint", checkpoint


def _source(data: DataSpec) -> dict[str, Any]:
    kept = {
        name: value
        for name, value in _said(data).items()
        if name in {"checksum", "manifest", "split"}
    }
    writable = {"read_only": False} if data.writable else {}
    return {"from": data.source, **kept, **writable}


def _conduct(spec: JobSpec) -> Pairs:
    yield "success", _said(spec.success)
    yield "on", spec.on
    yield "retries", _retries(spec)
    for name in ("time_limit", "total_limit"):
        yield name, getattr(spec, f"{name}_seconds") or None
    grace = spec.stop_grace_seconds
    yield "stop_grace", None if grace == JobSpec().stop_grace_seconds else grace


def _retries(spec: JobSpec) -> Any:
    if spec.retry == RetryBudgets():
        return None if spec.retries_max == parts.RETRIES else spec.retries_max
    return _renamed(_said(spec.retry), {"hold_seconds": "hold"})


def _queue(spec: JobSpec) -> Pairs:
    yield "priority", spec.priority_class or (spec.priority or None)
    yield "hold", spec.hold or None
    yield "array", _array(spec)
    names = {"succeeded": "ok", "ended": "any"}
    yield "after", _renamed(_said(spec.after), names)
    yield "rollout", [_without_units(_said(stage)) for stage in spec.rollout]
    yield "notify", [_said(each) for each in spec.notify]
    yield "observe", _without_units(_said(spec.observe))


def _array(spec: JobSpec) -> str:
    array = spec.array
    if not array.step:
        return ""
    step = "" if array.step == 1 else f":{array.step}"
    most = f"%{array.parallel_max}" if array.parallel_max else ""
    return f"{array.first}-{array.last}{step}{most}"


def _said(message: Any) -> dict[str, Any]:
    """Take a message's fields that are not what they are anyway."""
    said: dict[str, Any] = message.model_dump(
        mode="json", exclude_defaults=True, by_alias=False
    )
    return said


def _renamed(values: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in values.items()}


def _without_units(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name.removesuffix("_seconds"): value for name, value in values.items()}
