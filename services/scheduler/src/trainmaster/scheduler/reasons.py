"""Why a job waits: stable codes, sentences with numbers, and sentences that stay.

The foremost jobs are told what is free now and who is ahead. Numbers move with every
placement, so those further behind are told only what they need: ten thousand waiting
jobs are not told anew because one in front of them has moved.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from trainmaster.core.messages import WaitReason
from trainmaster.scheduler.floor import Floor, kinds_of
from trainmaster.scheduler.settings import EXPLAINED_MAX, NODES_NAMED_MAX
from trainmaster.scheduler.snapshot import Request, Room, Snapshot, Want

NO_NODES: Final = "NO_NODES"
NEVER_FITS: Final = "NEVER_FITS"
NODE_STATE: Final = "NODE_STATE"
PROOF: Final = "PROOF"
CAPACITY: Final = "CAPACITY"
PRIORITY: Final = "PRIORITY"
BACKOFF: Final = "BACKOFF"
PAUSED: Final = "PAUSED"
RESTORE_POINT: Final = "RESTORE_POINT"
NEXT_PLAN: Final = "NEXT_PLAN"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One blocker: as it is now, and in words that do not change by the minute."""

    code: str
    now: str
    always: str = ""

    @property
    def moving(self) -> WaitReason:
        """Tell it with the numbers of this moment."""
        return WaitReason(code=self.code, message=self.now)

    @property
    def steady(self) -> WaitReason:
        """Tell it without them."""
        return WaitReason(code=self.code, message=self.always or self.now)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Why nobody with one want is placed by this plan.

    `head` is the first of them. `ahead` is who reserved nodes that it could use.
    `reserves`: it could start here once others are gone, so nothing overtakes it.
    """

    head: Request
    reasons: tuple[Reason, ...]
    ahead: Request | None = None
    reserves: bool = False

    def before(self, request: Request) -> Request | None:
        """Name who stands before a request with this want."""
        if self.ahead is None and self.reserves and request.key != self.head.key:
            return self.head
        return self.ahead


def diagnose(request: Request, rooms: Mapping[str, Room], floor: Floor) -> Verdict:
    """Say all that keeps a want from being placed on what is free now."""
    want = request.want
    suitable = [room for room in rooms.values() if room.suits(want)]
    if want.nodes < 1 or len(suitable) < want.nodes:
        never = _no_nodes() if not rooms else _never_fits(want, suitable, rooms)
        return Verdict(head=request, reasons=(never,))
    usable = list(floor.could(want))
    free = [spot for spot in usable if spot.holds(want)]
    kept_by = [
        spot.reserved_by
        for spot in usable
        if spot.reserved & kinds_of(want) and spot.reserved_by is not None
    ]
    reasons = (
        *_node_state(want, suitable),
        *_proof(want, suitable),
        *_capacity(want, len(free), len(usable)),
    )
    return Verdict(
        head=request,
        reasons=reasons,
        ahead=min(kept_by, key=lambda owner: owner.place, default=None),
        reserves=len(usable) >= want.nodes,
    )


def _no_nodes() -> Reason:
    return Reason(code=NO_NODES, now="the pool has no registered node")


def _never_fits(
    want: Want, suitable: Sequence[Room], rooms: Mapping[str, Room]
) -> Reason:
    if want.nodes < 1:
        return Reason(code=NEVER_FITS, now="the job asks for what no node can give")
    most = max(
        rooms.values(),
        key=lambda room: (room.accelerators, room.cpus, room.memory_bytes),
    )
    return Reason(
        code=NEVER_FITS,
        now=f"needs {_need(want)}; the pool has {len(suitable)} such "
        f"(largest: {_offer(most)})",
    )


def _node_state(want: Want, suitable: Sequence[Room]) -> list[Reason]:
    away = sorted((room.node, room.trouble) for room in suitable if room.trouble)
    if len(suitable) - len(away) >= want.nodes:
        return []
    named = [f"{node} {trouble}" for node, trouble in away[:NODES_NAMED_MAX]]
    return [
        Reason(
            code=NODE_STATE,
            now=f"needs {want.nodes} of {len(suitable)} fitting nodes, "
            f"but these are away: {_list(named, len(away))}",
        )
    ]


def _proof(want: Want, suitable: Sequence[Room]) -> list[Reason]:
    serving = [room.node for room in suitable if not room.trouble]
    owing = sorted(set(serving) & set(want.owing))
    if not owing or len(serving) < want.nodes:
        return []
    if len(serving) - len(owing) >= want.nodes:
        return []
    named = _list(owing[:NODES_NAMED_MAX], len(owing))
    return [
        Reason(
            code=PROOF,
            now=f"an older attempt of this job may still run on {named}",
        )
    ]


def _capacity(want: Want, free: int, usable: int) -> list[Reason]:
    if free >= min(want.nodes, usable):
        return []
    return [
        Reason(
            code=CAPACITY,
            now=f"needs {_need(want)} free, {free} of {usable} are",
            always=f"needs {_need(want)} free",
        )
    ]


def gates(request: Request, snapshot: Snapshot) -> tuple[Reason, ...]:
    """Say what keeps one request from being considered, whatever is free."""
    found: list[Reason] = []
    team = request.key.team
    if team in snapshot.paused:
        until = snapshot.paused[team]
        end = f" until {_time(until)}" if until else ""
        found.append(Reason(code=PAUSED, now=f"team {team} is paused{end}"))
    if request.not_before is not None and request.not_before > snapshot.now:
        now = f"backs off until {_time(request.not_before)}"
        found.append(Reason(code=BACKOFF, now=now))
    if request.resume_from:
        now = f"waits for the restore point in {request.resume_from}"
        found.append(Reason(code=RESTORE_POINT, now=now))
    return tuple(found)


def priority(ahead: Request) -> Reason:
    """Say who is placed first."""
    since = _time(ahead.place.submitted_at)
    level = -ahead.place.priority_negated
    return Reason(
        code=PRIORITY,
        now=f"job {ahead.key.job} is ahead: priority {level}, submitted {since}",
        always=f"at least {EXPLAINED_MAX} jobs are ahead",
    )


def next_plan() -> Reason:
    """Say that one plan holds only so much."""
    return Reason(code=NEXT_PLAN, now="this plan is full, the next follows at once")


def _need(want: Want) -> str:
    nodes = f"{want.nodes} node{'s' if want.nodes > 1 else ''} with "
    parts = [f"{want.accelerators} accelerators"] if want.accelerators else []
    parts += [f"{want.cpus} cpus"] if want.cpus and not want.accelerators else []
    parts += [f"{want.memory_bytes} bytes of memory"] if want.memory_bytes else []
    return nodes + (", ".join(parts) or "nothing")


def _offer(room: Room) -> str:
    return (
        f"{room.accelerators} accelerators, {room.cpus} cpus, "
        f"{room.memory_bytes} bytes of memory"
    )


def _list(named: Sequence[str], count: int) -> str:
    more = count - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "")


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"
