"""Decides whether a job can ever fit a pool, and what the most is that would. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from trainmaster.core.errors import Fault
from trainmaster.core.spec import JobSpec
from trainmaster.jobfile.writing import size_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What one node can give when nobody else uses it."""

    accelerators: int = 0
    cpus: int = 0
    memory_bytes: int = 0


_DEMANDS: Final = (
    ("accelerators_per_node", "accelerators_per_node", "accelerators"),
    ("cpus_per_node", "cpus_per_node", "cpus"),
    ("memory_per_node", "memory_bytes_per_node", "memory_bytes"),
)
"""The field of the file, of the spec, of a node's shape."""


def never_fits(
    spec: JobSpec, shapes: Sequence[Shape], *, complete: bool = False
) -> tuple[Fault, ...]:
    """Say why a job fits none of these nodes even when all are empty.

    A pool that has no nodes yet refuses nothing: they may come. So may more of the
    same, so that their number is judged only where a pool is `complete`.
    """
    if not shapes:
        return ()
    alone = tuple(_too_large(spec, shapes))
    if alone:
        return alone
    able = [shape for shape in shapes if _takes(shape, spec)]
    if not able:
        return (_no_node_has_all(spec, shapes),)
    if complete and len(able) < spec.nodes:
        return (_too_many(spec, able, shapes),)
    return ()


def _too_large(spec: JobSpec, shapes: Sequence[Shape]) -> Iterator[Fault]:
    for field, demand, supply in _DEMANDS:
        wanted = int(getattr(spec, demand))
        largest = max(int(getattr(shape, supply)) for shape in shapes)
        if supply == "cpus" and spec.accelerators_per_node:
            continue  # cores come with the accelerators
        if wanted > largest:
            asked, most = str(wanted), str(largest)
            if supply == "memory_bytes":
                asked, most = size_text(wanted), _at_most(largest)
            yield Fault(
                field=field,
                message=f"`{field}: {asked}` never fits one node (largest: "
                f"{most}).{_spread(spec, supply, largest, shapes)}",
            )


def _at_most(size: int) -> str:
    """Write a size that can be asked for, in Gi with one decimal."""
    tenths = size * 10 // 1024**3
    return f"{tenths / 10:g}Gi" if tenths else size_text(size)


def _spread(spec: JobSpec, supply: str, largest: int, shapes: Sequence[Shape]) -> str:
    """Offer more nodes with fewer accelerators each, if that can be."""
    total = spec.nodes * spec.accelerators_per_node
    if supply != "accelerators" or not largest:
        return ""
    nodes = -(-total // largest)
    each = -(-total // nodes)
    if sum(shape.accelerators >= each for shape in shapes) < nodes:
        return ""
    return f" Did you mean `nodes: {nodes}` with `accelerators_per_node: {each}`?"


def _takes(shape: Shape, spec: JobSpec) -> bool:
    cpus = 0 if spec.accelerators_per_node else spec.cpus_per_node
    return (
        shape.accelerators >= spec.accelerators_per_node
        and shape.cpus >= cpus
        and shape.memory_bytes >= spec.memory_bytes_per_node
    )


def _no_node_has_all(spec: JobSpec, shapes: Sequence[Shape]) -> Fault:
    best = max(shapes, key=lambda each: (each.accelerators, each.memory_bytes))
    asked = size_text(spec.memory_bytes_per_node)
    return Fault(
        field="memory_per_node",
        message=f"no node has {spec.accelerators_per_node} accelerators together with "
        f"`memory_per_node: {asked}` (the one with most accelerators has "
        f"{_at_most(best.memory_bytes)})",
    )


def _too_many(spec: JobSpec, able: Sequence[Shape], shapes: Sequence[Shape]) -> Fault:
    more = "" if len(able) == len(shapes) else " that are large enough"
    return Fault(
        field="nodes",
        message=f"`nodes: {spec.nodes}` never fits pool `{spec.pool}`: it has "
        f"{len(able)} nodes{more}. Did you mean `nodes: {len(able)}`?",
    )
