"""What would let a blocked job start now: changes that were planned, not guessed.

The foremost jobs get counterfactuals: each was put through the planner in place of the
job as it is, and named only when it was placed. How much is planned again is bounded.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from trainmaster.core.ids import JobKey
from trainmaster.core.messages import Counterfactual, WaitReasons
from trainmaster.scheduler.plan import starts
from trainmaster.scheduler.result import Plan
from trainmaster.scheduler.settings import (
    COUNTERFACTUAL_WORK_MAX,
    COUNTERFACTUALS_EACH_MAX,
    COUNTERFACTUALS_JOBS_MAX,
)
from trainmaster.scheduler.snapshot import Line, Request, Snapshot, Want

_HOUR = 3600.0


def told(made: Plan, snapshots: Mapping[str, Snapshot]) -> Mapping[JobKey, WaitReasons]:
    """Give all reasons of the foremost, with what would let the first start."""
    found = dict(made.at_length())
    left = COUNTERFACTUAL_WORK_MAX
    for request, _ in islice(made.foremost(), COUNTERFACTUALS_JOBS_MAX):
        named: list[Counterfactual] = []
        for change in changes(request, made.pool, snapshots):
            left -= len(change.snapshot.rooms) + len(change.snapshot.lines)
            if left < 0 or len(named) >= COUNTERFACTUALS_EACH_MAX:
                break
            if holds(change):
                told_ = Counterfactual(change=change.change, message=change.message)
                named.append(told_)
        if named:
            update = {"counterfactuals": tuple(named)}
            found[request.key] = found[request.key].model_copy(update=update)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One way a job might be otherwise, and the pool it would then wait in."""

    change: str
    message: str
    request: Request
    snapshot: Snapshot


def holds(change: Change) -> bool:
    """Plan with the changed job in place of the job as it is."""
    asked, key = change.request, change.request.key
    others = (_without(line, asked) for line in change.snapshot.lines)
    lines = (*(line for line in others if line), Line(requests=(asked,)))
    return starts(replace(change.snapshot, lines=lines), key)


def _without(line: Line, asked: Request) -> Line | None:
    head = line.head
    if (head.key.team, head.priority) != (asked.key.team, asked.priority):
        return line
    left = tuple(each for each in line.requests if each.key != asked.key)
    if len(left) == len(line.requests):
        return line
    return Line(requests=left) if left else None


def changes(
    request: Request, pool: str, snapshots: Mapping[str, Snapshot]
) -> Iterator[Change]:
    """List what might help, the least painful first."""
    here = snapshots[pool]
    for change, message, want in _wants(request.want, here):
        yield Change(
            change=change,
            message=message,
            request=replace(request, want=want),
            snapshot=here,
        )
    for other, snapshot in sorted(snapshots.items()):
        if other != pool:
            yield Change(
                change=f"pool={other}",
                message=f"it would start now in pool {other}",
                request=replace(request, want=_free_of_pool(request.want)),
                snapshot=snapshot,
            )


def _free_of_pool(want: Want) -> Want:
    return want._replace(owing=(), avoid=(), enters=())


def _wants(want: Want, snapshot: Snapshot) -> Iterator[tuple[str, str, Want]]:
    if want.topology.endswith("!"):
        wish = want.topology.removesuffix("!")
        message = f"it would start now if one {wish} were a wish and not a demand"
        yield f"topology={wish}", message, want._replace(topology=wish)
    if want.types:
        message = "it would start now on any type of accelerator"
        yield "accelerator_types=", message, want._replace(types=())
    if not want.seconds:
        message = "it would start now with a time limit of one hour"
        yield "time_limit=1h", message, want._replace(seconds=_HOUR)
    nodes = want.nodes
    for fewer in _halves(nodes):
        message = f"it would start now with {fewer} of {nodes} nodes"
        yield f"nodes={fewer}", message, want._replace(nodes=fewer)
    most = max((len(room.devices_free) for room in snapshot.rooms.values()), default=0)
    split = want.accelerators
    for each in (d for d in _halves(split) if d <= most and want.charge % d == 0):
        spread = want.charge // each
        message = f"it would start now as {spread} nodes with {each} accelerators each"
        changed = want._replace(nodes=spread, accelerators=each)
        yield f"nodes={spread},accelerators_per_node={each}", message, changed
    for each in _halves(split):
        message = f"it would start now with {each} accelerators per node"
        yield (
            f"accelerators_per_node={each}",
            message,
            want._replace(accelerators=each),
        )


def _halves(count: int) -> Iterator[int]:
    """Halve down to one, a few times at most."""
    for _ in range(3):
        count //= 2
        if count < 1:
            return
        yield count
