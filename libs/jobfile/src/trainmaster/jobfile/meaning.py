"""Decides what a job file means: defaults, places on the nodes, variables of ranks."""

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from trainmaster.core.ids import JobId
from trainmaster.core.spec import PRIORITY_CLASSES, JobSpec, Launch
from trainmaster.jobfile import parts
from trainmaster.jobfile.installation import Site
from trainmaster.jobfile.limits import DEFAULT_POOL, SYSTEM_PATH
from trainmaster.jobfile.report import Report
from trainmaster.jobfile.table import as_group

Values = Mapping[str, Any]
_SAME: Final = (
    *("name", "project", "labels", "command", "pool", "accelerators_per_node"),
    *("cpus_per_node", "hold", "accelerator_types", "topology", "setup"),
    *("parameters", "secrets", "seed", "on", "array", "notify"),
)
_RENAMED: Final = {
    **{name: name for name in _SAME},
    "memory_per_node": "memory_bytes_per_node",
    "shm_per_node": "shm_bytes_per_node",
    "disk_per_node": "disk_bytes_per_node",
    "time_limit": "time_limit_seconds",
    "total_limit": "total_limit_seconds",
    "stop_grace": "stop_grace_seconds",
}
_OUTPUT: Final = "tm-runs/{job}"
_STORAGE: Final = "storage://"
_STARTERS: Final = frozenset(
    {"torchrun", "accelerate", "deepspeed", "mpirun", "mpiexec", "horovodrun"}
)
_STARTING_MODULES: Final = frozenset(
    {"torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What the paths of a file stand on: its folder, the stores, who is told."""

    directory: str
    site: Site
    report: Report

    def at(self, base: str, name: str, path: str) -> str:
        """Place a path in a folder; an absolute one stays, a store's is mounted."""
        if not path.startswith(_STORAGE):
            return posixpath.normpath(posixpath.join(base, path))
        root = self.site.storage_root
        if not root:
            self.report.wrong(
                name,
                f"`{name}` is on `{_STORAGE}`, and this installation has no stores: "
                "write a path, or have the administrator set TM_STORAGE_ROOT",
            )
        return posixpath.normpath(
            posixpath.join(root or "/", path.removeprefix(_STORAGE))
        )


def meant(values: Values, ground: Ground) -> JobSpec:
    """Fill in what the file leaves open."""
    work = _work_directory(values, ground)

    def place(name: str, path: str) -> str:
        return ground.at(work, name, path)

    launch = Launch(values.get("launch") or guessed_launch(values))
    sources = parts.data("data", values.get("data", {}), place)
    weights = parts.data("weights", values.get("weights", {}), place)
    data = values.get("data_directory", "")
    return JobSpec.model_validate(
        {
            "pool": DEFAULT_POOL,
            **parts.renamed(values, _RENAMED),
            **_groups(values, place),
            **_priority(values.get("priority", 0)),
            **parts.retries(values.get("retries")),
            **parts.nodes(values.get("nodes")),
            "work_directory": work,
            "launch": launch,
            "ranks_per_node": _ranks_per_node(values, launch),
            "data": sources,
            "weights": weights,
            "data_directory": (
                place("data_directory", data)
                if data
                else next((each["path"] for each in sources), "")
            ),
            "output_directory": place(
                "output_directory", values.get("output_directory", _OUTPUT)
            ),
            "env": _environment(values, (*sources, *weights), ground, place),
        }
    )


def _groups(values: Values, place: parts.Placer) -> dict[str, Any]:
    """Take the groups in; one that is not there stays the one shared default."""
    made: dict[str, Any] = {}
    if "checkpoint" in values:
        made["checkpoint"] = parts.checkpoint(values["checkpoint"], place)
    if "success" in values:
        made["success"] = parts.success(values["success"], place)
    if "work_directory" in values:
        made["source"] = parts.source(values["work_directory"], place)
    if "rollout" in values:
        made["rollout"] = parts.rollout(values["rollout"])
    for name, make in _PLAIN_GROUPS.items():
        if name in values:
            made[name] = make(values[name])
    environment = parts.renamed(
        values, {each: each for each in ("container", "conda", "modules")}
    )
    if "venv" in values:
        environment["venv"] = place("venv", values["venv"])
    return {**made, "environment": environment} if environment else made


_PLAIN_GROUPS: Final = {
    "after": parts.after,
    "observe": parts.observe,
    "backend": parts.backend,
}


def _work_directory(values: Values, ground: Ground) -> str:
    said = values.get("work_directory", "")
    source = as_group(said)
    path: str = said if source is None else source.get("in_place", "")
    work = ground.at(ground.directory, "work_directory", path)
    if not posixpath.isabs(work):
        ground.report.wrong(
            "work_directory",
            "`work_directory` must be absolute here: the request names no folder",
        )
    return work


def guessed_launch(values: Values) -> Launch:
    """Start a command once that starts the ranks itself."""
    return Launch.ONCE_PER_NODE if starter(values) else Launch.PER_RANK


def starter(values: Values) -> str:
    """Name the program in a command that starts ranks itself, "" for none."""
    command: tuple[str, ...] = values.get("command", ())
    if not command:
        return ""
    program = posixpath.basename(command[0])
    if program in _STARTERS:
        return program
    modules = command[2:3] if command[1:2] == ("-m",) else ()
    return next((each for each in modules if each in _STARTING_MODULES), "")


def _ranks_per_node(values: Values, launch: Launch) -> int:
    """One rank for each accelerator, unless the command starts the ranks itself."""
    ranks: int | None = values.get("ranks_per_node")
    if ranks is not None:
        return ranks
    devices: int = values.get("accelerators_per_node", 0)
    return 1 if launch is Launch.ONCE_PER_NODE else devices or 1


def _priority(said: str | int) -> dict[str, Any]:
    if isinstance(said, str):
        return {"priority": PRIORITY_CLASSES[said], "priority_class": said}
    return {"priority": said}


# ------------------------------------------------------------------------- variables


def _environment(
    values: Values,
    sources: tuple[Mapping[str, Any], ...],
    ground: Ground,
    place: parts.Placer,
) -> dict[str, str]:
    """Add to the file's own variables those that follow from other fields."""
    env: dict[str, str] = dict(values.get("env", {}))
    for field, variable, value in _derived(values, sources):
        if variable in env:
            ground.report.wrong(
                f"env.{variable}",
                f"`env.{variable}` is made from `{field}`; remove one of them",
            )
        env[variable] = value
    if "venv" in values:
        venv = place("venv", values["venv"])
        env["PATH"] = f"{venv}/bin:{env.get('PATH', SYSTEM_PATH)}"
        env["VIRTUAL_ENV"] = venv
    return env


def _derived(
    values: Values, sources: tuple[Mapping[str, Any], ...]
) -> Iterator[tuple[str, str, str]]:
    yield from parts.parameters(values)
    counts = len(values.get("data", ()))
    for index, each in enumerate(sources):
        group = "data" if index < counts else "weights"
        field = f"{group}.{each['name']}"
        yield field, f"{group}_{each['name']}".upper(), each["path"]


def filled(spec: JobSpec, job: JobId) -> JobSpec:
    """Put the job's id where the paths want it."""
    checkpoint, outputs = spec.checkpoint, spec.success.outputs
    changed: dict[str, Any] = {
        "output_directory": spec.output_directory.replace("{job}", job)
    }
    if checkpoint.directory:
        directory = checkpoint.directory.replace("{job}", job)
        changed["checkpoint"] = checkpoint.model_copy(update={"directory": directory})
    if outputs:
        named = tuple(each.replace("{job}", job) for each in outputs)
        changed["success"] = spec.success.model_copy(update={"outputs": named})
    return spec.model_copy(update=changed)
