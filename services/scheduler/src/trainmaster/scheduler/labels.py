"""What a node's facts mean for placement: where it stands, its kind, its links. Pure.

Facts are words the agent or an operator chose; what cannot be read is left out.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from trainmaster.core.nodes import Node
from trainmaster.scheduler.settings import DEVICES_PER_NODE_MAX

LEVELS: Final = ("nvlink", "rack", "block", "zone")
"""From the nearest to the widest."""


class Likeness(NamedTuple):
    """What has to be equal on all nodes of a gang."""

    accelerator: str = ""
    driver: str = ""
    image: str = ""


class Look(NamedTuple):
    """What an empty node offers; nodes that look alike are decided alike."""

    accelerators: int = 0
    cpus: int = 0
    memory_bytes: int = 0
    likeness: Likeness = Likeness()
    trouble: str = ""


class Frame(NamedTuple):
    """One node, whatever runs on it. `islands` are devices with fast links."""

    node: str
    look: Look = Look()
    labels: tuple[str, ...] = ("",) * len(LEVELS)
    islands: tuple[tuple[int, ...], ...] = ()

    def domain(self, level: str) -> str:
        """Name the domain it stands in, "" when that is unknown.

        Two racks of one name in two zones are two domains.
        """
        at = LEVELS.index(level)
        own = self.labels[at]
        return "/".join(reversed(self.labels[at:])) if own else ""


def frame_of(name: str, node: Node) -> Frame:
    """Read a node's facts; numbers are taken within reason."""
    offered, facts = node.capacity, node.facts
    accelerators = min(max(offered.accelerators, 0), DEVICES_PER_NODE_MAX)
    return Frame(
        node=name,
        look=Look(
            accelerators=accelerators,
            cpus=max(offered.cpus, 0),
            memory_bytes=max(offered.memory_bytes, 0),
            likeness=_likeness(facts),
            trouble=node.trouble,
        ),
        labels=tuple(facts.get(level, "") for level in LEVELS),
        islands=_islands(facts.get("nvlink_islands", ""), accelerators),
    )


def _likeness(facts: Mapping[str, str]) -> Likeness:
    return Likeness(
        accelerator=facts.get("accelerator") or facts.get("accelerators", ""),
        driver=facts.get("driver", ""),
        image=facts.get("image", ""),
    )


def _islands(text: str, accelerators: int) -> tuple[tuple[int, ...], ...]:
    """Read `0,1,2,3;4,5,6,7`; a device stands on the first island that names it."""
    left, found = set(range(accelerators)), list[tuple[int, ...]]()
    for part in text.split(";"):
        words = (word.strip() for word in part.split(","))
        named = {int(w) for w in words if w.isascii() and w.isdigit()} & left
        left -= named
        if named:
            found.append(tuple(sorted(named)))
    return tuple(found)


def pick(frame: Frame, free: tuple[int, ...], count: int) -> tuple[int, ...]:
    """Choose devices along links: the tightest island that has all, else few islands.

    Without islands the lowest ones are taken.
    """
    if not frame.islands or not count:
        return free[:count]
    groups = [tuple(i for i in free if i in island) for island in frame.islands]
    alone = {i for island in frame.islands for i in island}
    groups += [(i,) for i in free if i not in alone]
    whole = [group for group in groups if len(group) >= count]
    if whole:
        return min(whole, key=lambda group: (len(group), group))[:count]
    fullest = sorted(groups, key=lambda group: (-len(group), group))
    chosen = [index for group in fullest for index in group]
    return tuple(sorted(chosen[:count]))
