"""Decides what the groups of a job file become in the spec: values in, values out."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from trainmaster.jobfile.table import as_group

Values = Mapping[str, Any]
Placer = Callable[[str, str], str]
"""Says where a path of a field is on the nodes."""

RETRIES: Final = 3
_BUDGETS: Final = ("user", "infrastructure", "node", "out_of_memory")


def renamed(values: Values, names: Mapping[str, str]) -> dict[str, Any]:
    """Take those values that have a name in the spec, under that name."""
    return {new: values[old] for old, new in names.items() if old in values}


def source(value: Any, place: Placer) -> dict[str, Any]:
    """Say where the code comes from; a path says nothing but where it is used."""
    found = dict(as_group(value) or {})
    found.pop("in_place", None)
    if "archive" in found:
        found["archive"] = place("work_directory.archive", found["archive"])
    return found


def data(name: str, sources: Values, place: Placer) -> tuple[dict[str, Any], ...]:
    """Say of each source where it is."""
    return tuple(_one_source(f"{name}.{key}", sources[key], place) for key in sources)


def _one_source(name: str, value: Values, place: Placer) -> dict[str, Any]:
    at: str = value.get("from", "")
    kept = renamed(value, {"checksum": "checksum", "split": "split"})
    manifest: str = value.get("manifest", "")
    if manifest:
        kept["manifest"] = place(f"{name}.manifest", manifest)
    return {
        **kept,
        "name": name.partition(".")[2],
        "source": at,
        "path": place(f"{name}.from", at) if at else "",
        "writable": not value.get("read_only", True),
    }


def checkpoint(values: Values, place: Placer) -> dict[str, Any]:
    """Say where the training saves, and how."""
    placed = {
        name: place(f"checkpoint.{name}", values[name])
        for name in ("directory", "resume_from")
        if name in values
    }
    keep = renamed(
        values.get("keep", {}),
        {
            "last": "last",
            "every_steps": "every_steps",
            "best": "best",
            "metric": "metric",
            "mode": "mode",
            "younger_than": "age_seconds",
        },
    )
    if "metric" in keep:
        keep.setdefault("mode", "min")
    plain = {"interval_steps": "interval_steps", "verify": "verify"}
    return {**renamed(values, plain), **placed, "keep": keep}


def success(values: Values, place: Placer) -> dict[str, Any]:
    """Say what evidence is needed."""
    outputs: tuple[str, ...] = values.get("outputs", ())
    placed = [place("success.outputs", each) for each in outputs]
    return {**values, "outputs": tuple(placed)} if placed else dict(values)


def retries(value: Any) -> dict[str, Any]:
    """Make the one budget that holds for now, and the separate ones."""
    budgets = as_group(value)
    if budgets is None:
        return {"retries_max": RETRIES if value is None else value}
    given: dict[str, Any] = renamed(budgets, {each: each for each in _BUDGETS})
    most = max(given.values(), default=RETRIES)
    held = renamed(budgets, {"hold": "hold_seconds"})
    return {"retries_max": most, "retry": {**given, **held}}


def nodes(value: Any) -> dict[str, Any]:
    """Give an elastic job the fewest nodes it can use."""
    bounds = as_group(value)
    if bounds is None:
        return {"nodes": 1 if value is None else value}
    elastic = {"batch": "global", **bounds}
    return {"nodes": bounds.get("min", 1), "node_range": elastic}


def after(values: Values) -> dict[str, Any]:
    """Name the jobs that are waited for."""
    return renamed(values, {"ok": "succeeded", "any": "ended", "failed": "failed"})


def rollout(stages: tuple[Values, ...]) -> tuple[dict[str, Any], ...]:
    """Name the steps before the whole job."""
    names = {each: each for each in ("name", "command", "nodes", "steps")}
    return tuple(
        renamed(stage, {**names, "time_limit": "time_limit_seconds"})
        for stage in stages
    )


def observe(values: Values) -> dict[str, Any]:
    """Say how closely the job is watched."""
    return renamed(
        values,
        {
            "metrics_interval": "metrics_interval_seconds",
            "metrics_interval_steps": "metrics_interval_steps",
            "export_interval": "export_interval_seconds",
            "health_interval": "health_interval_seconds",
            "log_level": "log_level",
        },
    )


def backend(values: Values) -> dict[str, Any]:
    """Say what is passed through."""
    return renamed(values, {"slurm": "slurm", "kubernetes": "kubernetes_json"})


def parameters(values: Values) -> Iterator[tuple[str, str, str]]:
    """List what ranks find as PARAM_: the field, the variable, its value."""
    for name, value in values.get("parameters", {}).items():
        yield f"parameters.{name}", f"PARAM_{name.upper()}", value
    derived = (
        ("seed", "PARAM_SEED", values.get("seed")),
        *_inner(values, "checkpoint", "interval_steps", "CHECKPOINT_INTERVAL_STEPS"),
        *_inner(values, "observe", "metrics_interval_steps", "METRICS_INTERVAL_STEPS"),
        *_inner(values, "observe", "log_level", "LOG_LEVEL"),
    )
    for field, variable, value in derived:
        if value is not None:
            yield field, variable, str(value)


def _inner(
    values: Values, group: str, name: str, variable: str
) -> Iterator[tuple[str, str, Any]]:
    if name in values.get(group, {}):
        yield f"{group}.{name}", f"PARAM_{variable}", values[group][name]
