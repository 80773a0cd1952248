"""Whole accelerators of a public trace packed by four rules: what is left in pieces.

The trace is the openb one of 1,523 nodes and 8,152 pods; a share of a device counts as
a whole one, since nothing here shares a device. Pods without a device are left out.
They come in random order, again and again, and none ever leaves (the method of the
trace's authors). Once what was asked for is 90 % of the capacity, fragmentation is how
much of all devices is free and of no use to a pod, weighted by how often such a pod
comes, and `whole` is how many pods of 8 devices would still fit; allocation is what is
given away once 1.3 times the capacity was asked for.

`python -m bench.packing FOLDER` with openb_node_list_all_node.csv and
openb_pod_list_default.csv in FOLDER.
"""

import csv
import random
import statistics
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from bench.report import Figure, report, spread
from trainmaster.core.ids import JobId, JobKey
from trainmaster.scheduler import gang
from trainmaster.scheduler.labels import Frame, Likeness, Look
from trainmaster.scheduler.layout import floor_of
from trainmaster.scheduler.snapshot import Place, Request, Room, Snapshot, Want
from trainmaster.testkit.builders import START

SEEDS: Final = 5
LOAD: Final = 1.3
HALFWAY: Final = 0.9
WIDE: Final = 8


class Ask(NamedTuple):
    """What one pod wants."""

    devices: int
    cpus: int
    memory_bytes: int
    types: tuple[str, ...]


class Node(NamedTuple):
    """What one node of the trace has."""

    name: str
    devices: int
    cpus: int
    memory_bytes: int
    type_: str


class Left:
    """What a node has left, for the rules we compare with."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.devices, self.cpus = node.devices, node.cpus
        self.memory_bytes = node.memory_bytes

    def holds(self, ask: Ask) -> bool:
        """Tell whether a pod fits: all rules see the same, cores not counted."""
        return (
            self.devices >= ask.devices
            and self.memory_bytes >= ask.memory_bytes
            and self.node.cpus >= ask.cpus
            and (not ask.types or self.node.type_ in ask.types)
        )

    def take(self, ask: Ask) -> None:
        """Give a pod its share."""
        self.devices -= ask.devices
        self.memory_bytes -= ask.memory_bytes


_Rule = Callable[[list[Left], random.Random], Left]
RULES: Final[dict[str, _Rule]] = {
    "first_fit": lambda fits, _: fits[0],
    "best_fit": lambda fits, _: min(fits, key=lambda n: (n.devices, n.node.name)),
    "random_fit": lambda fits, chance: chance.choice(fits),
}


def nodes_of(folder: Path) -> list[Node]:
    """Read the nodes that have devices."""
    with (folder / "openb_node_list_all_node.csv").open() as file:
        return [
            Node(
                row["sn"],
                int(row["gpu"]),
                int(row["cpu_milli"]) // 1000,
                int(row["memory_mib"]) << 20,
                row["model"],
            )
            for row in csv.DictReader(file)
            if int(row["gpu"])
        ]


def asks_of(folder: Path) -> list[Ask]:
    """Read what pods with devices want; a share is a whole device."""
    with (folder / "openb_pod_list_default.csv").open() as file:
        return [
            Ask(
                int(row["num_gpu"]),
                -(-int(row["cpu_milli"]) // 1000),
                int(row["memory_mib"]) << 20,
                tuple(t for t in row["gpu_spec"].split("|") if t),
            )
            for row in csv.DictReader(file)
            if int(row["num_gpu"])
        ]


class Outcome(NamedTuple):
    """In per cent of all devices: given away in the end; of no use, whole before."""

    allocation: float
    fragmentation: float
    whole: float


class Packer(Protocol):
    """Puts pods on nodes, one at a time."""

    def put(self, ask: Ask) -> None:
        """Place a pod if it fits somewhere."""
        ...

    def left(self) -> list[Left]:
        """Say what every node has left."""
        ...


class Simple:
    """Packs by one of the simple rules."""

    def __init__(self, rule: _Rule, nodes: list[Node], chance: random.Random) -> None:
        self._rule, self._chance = rule, chance
        self._left = [Left(node) for node in nodes]

    def put(self, ask: Ask) -> None:
        """Place a pod if it fits somewhere."""
        fits = [each for each in self._left if each.holds(ask)]
        if fits:
            self._rule(fits, self._chance).take(ask)

    def left(self) -> list[Left]:
        """Say what every node has left."""
        return self._left


class Planner:
    """Packs as the scheduler does, on one floor that only fills up."""

    def __init__(self, nodes: list[Node]) -> None:
        rooms = {node.name: _room(node) for node in nodes}
        self._floor = floor_of(Snapshot(pool="openb", now=START, rooms=rooms))
        self._left = [Left(node) for node in nodes]
        self._number = 0

    def put(self, ask: Ask) -> None:
        """Place a pod if it fits somewhere."""
        self._number += 1
        name = str(self._number)
        want = Want(1, ask.devices, ask.cpus, ask.memory_bytes, types=ask.types)
        request = Request(
            key=JobKey("t", JobId(name)),
            place=Place(0, START, name),
            attempt=1,
            want=want,
            ranks_per_node=1,
        )
        gang.place(self._floor, request, want)

    def left(self) -> list[Left]:
        """Say what every node has left."""
        for each in self._left:
            face = self._floor.spots[each.node.name].face
            each.devices, each.memory_bytes = face.devices, face.memory_bytes
        return self._left


def pack(packer: Packer, asks: list[Ask], seed: int) -> Outcome:
    """Let pods come until more were asked for than there is."""
    chance, come = random.Random(seed), 0
    total = sum(each.node.devices for each in packer.left())
    fragmentation = whole = -1.0
    while come < LOAD * total:
        if come >= HALFWAY * total and fragmentation < 0:
            fragmentation, whole = unusable(packer.left(), asks)
        ask = chance.choice(asks)
        come += ask.devices
        packer.put(ask)
    free = sum(each.devices for each in packer.left())
    return Outcome(100 * (1 - free / total), fragmentation, whole)


def unusable(left: list[Left], asks: list[Ask]) -> tuple[float, float]:
    """Say what is free but of no use, and what is free in whole nodes."""
    total = sum(each.node.devices for each in left)
    mix = Counter(asks).most_common(40)
    weight = sum(count for _, count in mix)
    lost = sum(
        count * each.devices
        for ask, count in mix
        for each in left
        if not each.holds(ask)
    )
    whole = sum(each.devices // WIDE * WIDE for each in left)
    return 100 * lost / weight / total, 100 * whole / total


def _room(node: Node) -> Room:
    likeness = Likeness(accelerator=node.type_)
    look = Look(node.devices, node.cpus, node.memory_bytes, likeness)
    devices = tuple(range(node.devices))
    return Room(Frame(node.name, look), devices, node.cpus, node.memory_bytes)


def main() -> None:
    """Pack a few times by every rule and compare."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    if not (folder / "openb_node_list_all_node.csv").is_file():
        print(f"skipped: no openb trace in {folder}; name its folder")
        return
    nodes, asks = nodes_of(folder), asks_of(folder)
    found: dict[str, list[Outcome]] = {}
    for seed in range(SEEDS):
        packers: dict[str, Packer] = {"planner": Planner(nodes)}
        for name, rule in RULES.items():
            packers[name] = Simple(rule, nodes, random.Random(seed))
        for name, packer in packers.items():
            found.setdefault(name, []).append(pack(packer, asks, seed))
    figures: list[Figure] = []
    for name, outcomes in found.items():
        for what in Outcome._fields:
            values = [getattr(each, what) for each in outcomes]
            figures.append(
                Figure(
                    name=f"{what}_{name}",
                    value=statistics.mean(values),
                    unit="%",
                    spread=spread(values),
                )
            )
    report(
        "packing",
        figures,
        method=f"openb trace, {len(nodes)} nodes with devices, {len(asks)} pods with "
        f"devices, shares rounded up, {HALFWAY} and {LOAD} x capacity, {SEEDS} seeds",
    )


if __name__ == "__main__":
    main()
