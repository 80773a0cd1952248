"""What teams hold while a plan is made: quota along the tree, caps, and fair shares.

A team's charge counts for all teams above it. A team without quota of its own may hold
what its children may hold together, when all of them have a quota; else as much as it
likes. What is borrowed is what siblings leave: a parent's own limit is kept as well.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import itemgetter

from trainmaster.core.ids import TeamKey
from trainmaster.scheduler.settings import TEAM_DEPTH_MAX
from trainmaster.scheduler.snapshot import Snapshot, Want
from trainmaster.scheduler.teams import Quota, Team
from trainmaster.scheduler.usage import TeamUse, used_of

_NO_QUOTA = Quota()
_NO_TEAM = Team()
_NO_USE = TeamUse()


@dataclass(frozen=True, slots=True, kw_only=True)
class Short:
    """A limit that a start would break: whose, how much it is, how much is held."""

    whose: str
    what: str
    limit: int
    held: int


@dataclass(slots=True)
class Books:
    """The charges of one plan: they grow with every placement and every promise."""

    snapshot: Snapshot
    held: dict[str, int] = field(default_factory=dict[str, int])
    cpus: dict[str, int] = field(default_factory=dict[str, int])
    users: dict[tuple[str, str], int] = field(
        default_factory=dict[tuple[str, str], int]
    )
    _recent: dict[str, tuple[float, float]] = field(
        default_factory=dict[str, tuple[float, float]]
    )
    _paths: dict[str, tuple[str, ...]] = field(
        default_factory=dict[str, tuple[str, ...]]
    )
    _children: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    _capacity: tuple[int, int] = (0, 0)
    _shares: dict[str, tuple[float, ...]] = field(
        default_factory=dict[str, tuple[float, ...]]
    )
    _limits: dict[str, int] = field(default_factory=dict[str, int])

    def __post_init__(self) -> None:
        snapshot = self.snapshot
        self.users.update(snapshot.user_use)
        for key, team in snapshot.teams.items():
            if team.parent:
                self._children.setdefault(team.parent, []).append(key.team)
        # In one order: sums of fractions depend on it.
        for key, use in sorted(snapshot.use.items(), key=itemgetter(0)):
            used = used_of(use.by_pool, snapshot.pool)
            recent = used.recent(snapshot.now)
            for each in self.path(key.team):
                self.held[each] = self.held.get(each, 0) + used.accelerators
                self.cpus[each] = self.cpus.get(each, 0) + used.cpus
                old = self._recent.get(each, (0.0, 0.0))
                self._recent[each] = (old[0] + recent[0], old[1] + recent[1])
        looks = [room.frame.look for room in snapshot.rooms.values()]
        self._capacity = (
            sum(x.accelerators for x in looks),
            sum(x.cpus for x in looks),
        )

    def path(self, team: str) -> tuple[str, ...]:
        """Name a team and all above it, the nearest first."""
        known = self._paths.get(team)
        if known is None:
            known = self._paths[team] = tuple(self._walk(team))
        return known

    def _walk(self, team: str) -> Iterator[str]:
        seen: set[str] = set()
        while team and team not in seen and len(seen) < TEAM_DEPTH_MAX:
            seen.add(team)
            yield team
            team = self.snapshot.teams.get(TeamKey(team), _NO_TEAM).parent

    def quota(self, team: str) -> Quota:
        """Give what was set for a team in this pool."""
        known = self.snapshot.teams.get(TeamKey(team), _NO_TEAM)
        return known.quotas.get(self.snapshot.pool, _NO_QUOTA)

    def nominal(self, team: str, depth: int = 0) -> int:
        """Count what is a team's own; negative is no limit."""
        own = self.quota(team).accelerators
        children = self._children.get(team)
        if own >= 0 or not children or depth >= TEAM_DEPTH_MAX:
            return own
        parts = [self.nominal(child, depth + 1) for child in children]
        return -1 if min(parts) < 0 else sum(parts)

    def limit(self, team: str) -> int:
        """Count what a team may hold, lent things included; negative is no limit."""
        known = self._limits.get(team)
        if known is None:
            quota = self.quota(team)
            own = quota.accelerators >= 0
            known = self._limits[team] = quota.limit if own else self.nominal(team)
        return known

    def short(self, team: str, user: str, want: Want) -> tuple[Short, ...]:
        """Name every limit that a start would break."""
        return tuple(self._short(team, user, want.charge)) if want.charge else ()

    def _short(self, team: str, user: str, charge: int) -> Iterator[Short]:
        quota = self.quota(team)
        if 0 <= quota.accelerators_per_job_max < charge:
            limit = quota.accelerators_per_job_max
            yield Short(whose=team, what="job", limit=limit, held=0)
        mine = self.users.get((team, user), 0)
        if 0 <= quota.accelerators_per_user_max < mine + charge:
            limit = quota.accelerators_per_user_max
            yield Short(whose=user or "nobody", what="user", limit=limit, held=mine)
        for each in self.path(team):
            limit, held = self.limit(each), self.held.get(each, 0)
            if 0 <= limit < held + charge:
                yield Short(whose=each, what="team", limit=limit, held=held)

    def charge(self, team: str, user: str, want: Want) -> None:
        """Book a placement, or a promise of one."""
        self._shares.clear()
        count = want.charge
        cpus = 0 if want.accelerators else want.nodes * want.cpus
        self.users[team, user] = self.users.get((team, user), 0) + count
        for each in self.path(team):
            self.held[each] = self.held.get(each, 0) + count
            self.cpus[each] = self.cpus.get(each, 0) + cpus

    def share(self, team: str) -> tuple[float, ...]:
        """Give a team's part of what it uses most, from the top of the tree down."""
        known = self._shares.get(team)
        if known is None:
            parts = map(self._part, reversed(self.path(team)))
            known = self._shares[team] = tuple(parts)
        return known

    def _part(self, team: str) -> float:
        recent = self._recent.get(team, (0.0, 0.0))
        used = (self.held.get(team, 0) + recent[0], self.cpus.get(team, 0) + recent[1])
        parts = (u / c for u, c in zip(used, self._capacity, strict=True) if c > 0)
        return max(parts, default=0.0) / self.quota(team).weight
