"""Which nodes a gang gets: all of them or none, alike, and as near as it wishes.

Near is a wish: the nearest level at which the whole gang fits is used, the domain with
the fewest fitting nodes first, so that wide domains stay whole. With `nvlink!` or
another level and a `!` it is a demand.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

from trainmaster.core.values import MemberSlot
from trainmaster.scheduler.floor import Floor
from trainmaster.scheduler.labels import LEVELS, Likeness
from trainmaster.scheduler.snapshot import Request, Want


def place(floor: Floor, request: Request, want: Want) -> tuple[MemberSlot, ...] | None:
    """Place all of a gang, or none of it."""
    nodes = choose(floor, want)
    if nodes is None:
        return None
    ranks = request.ranks_per_node
    return tuple(
        MemberSlot(
            node=node,
            accelerators=floor.take(node, want),
            first_rank=index * ranks,
            ranks=ranks,
        )
        for index, node in enumerate(nodes)
    )


def choose(floor: Floor, want: Want) -> Sequence[str] | None:
    """Choose the nodes of a gang; None when there are too few."""
    if want.nodes < 1:
        return None
    if want.nodes == 1:
        node = floor.single(want)
        return None if node is None else (node,)
    groups = list(_alike(floor, want))
    for level in levels_of(want):
        for names in groups:
            chosen = _near(floor, want, names, level)
            if chosen is not None:
                return chosen
    return None


def levels_of(want: Want) -> Iterator[str]:
    """List the levels to try, the nearest first; "" is anywhere."""
    level = want.topology.removesuffix("!")
    if level:
        demanded = want.topology.endswith("!")
        at = LEVELS.index(level)
        yield from LEVELS[at : at + 1] if demanded else LEVELS[at:]
        if demanded:
            return
    yield ""


def _alike(floor: Floor, want: Want) -> Iterator[list[str]]:
    """Group the nodes that fit by what must be equal, the best fitting group first."""
    groups: dict[Likeness, list[str]] = {}
    shunned = {*want.avoid, *want.owing}
    late: dict[Likeness, list[str]] = {}
    for face in floor.faces(want):
        likeness = face.look.likeness
        found = floor.names[face]
        if not shunned:
            groups.setdefault(likeness, []).extend(found)
            continue
        groups.setdefault(likeness, []).extend(n for n in found if n not in shunned)
        allowed = (n for n in found if n in want.avoid and n not in want.owing)
        late.setdefault(likeness, []).extend(allowed)
    for likeness, names in groups.items():
        names.extend(late.get(likeness, ()))
        if len(names) >= want.nodes:
            yield names


def _near(
    floor: Floor, want: Want, names: list[str], level: str
) -> Sequence[str] | None:
    if not level:
        return names[: want.nodes]
    domains: dict[str, list[str]] = {}
    for name in names:
        domain = floor.spots[name].room.frame.domain(level)
        if domain:
            domains.setdefault(domain, []).append(name)
    wide = [(len(m), d) for d, m in domains.items() if len(m) >= want.nodes]
    if not wide:
        return None
    return list(islice(domains[min(wide)[1]], want.nodes))
