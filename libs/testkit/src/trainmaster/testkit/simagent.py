"""A node on virtual time: its agent, its disk, its processes, and what befalls them.

It keeps the promises a real agent makes (a lower order is ignored, a closed attempt
never starts, a missing order is none) and sees everything that can go wrong: lost
memory, a reboot, reports said twice, ranks that fail, hang or end in any order.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from trainmaster.core.decision import Write
from trainmaster.core.facts import (
    CheckFailure,
    MemberClosed,
    MemberFact,
    MemberPrepared,
    MemberStarted,
    MemberStopped,
    RankExited,
)
from trainmaster.core.ids import JobId, MemberKey, NodeKey
from trainmaster.core.messages import Assignment, Order
from trainmaster.core.values import Proof, RankExit
from trainmaster.testkit.sightings import Sighting
from trainmaster.testkit.simlog import SimServer


@dataclass(frozen=True, slots=True, kw_only=True)
class Odds:
    """How often things go wrong, per chance they have."""

    prepare_fails: float = 0.03
    start_fails: float = 0.03
    rank_fails: float = 0.1
    ends: float = 0.3
    said_twice: float = 0.1


CALM = Odds(prepare_fails=0, start_fails=0, rank_fails=0, said_twice=0, ends=0.6)


@dataclass(slots=True)
class Part:
    """What the node's disk and kernel know of one attempt."""

    ranks: dict[int, RankExit | None] = field(
        default_factory=dict[int, RankExit | None]
    )
    prepared: bool = False
    spawned: bool = False
    stopped: bool = False
    closed: bool = False
    gone: bool = False


class SimAgent:
    """One node."""

    def __init__(self, key: NodeKey, server: SimServer, chance: random.Random) -> None:
        self.key = key
        self.boot = 1
        self.odds = Odds()
        self.dead = False
        self.parts: dict[tuple[JobId, int], Part] = {}
        self.outbox: list[Write] = []
        self.sightings: list[Sighting] = []
        self._server = server
        self._chance = chance
        self._seen: dict[JobId, tuple[int, int]] = {}
        self._said = 0

    def obey(self, job: JobId, told: Assignment) -> None:
        """Carry out one assignment, unless a higher one was seen."""
        if self.dead:
            return
        wish = (told.attempt, told.order.rank)
        if wish < self._seen.get(job, (0, 0)):
            return
        self._seen[job] = wish
        for older, attempt in list(self.parts):
            if older == job and attempt < told.attempt:
                self._close(job, attempt)
        self._carry_out(job, told, self.parts.setdefault((job, told.attempt), Part()))

    def _carry_out(self, job: JobId, told: Assignment, part: Part) -> None:
        match told.order:
            case Order.PREPARE:
                self._prepare(job, told, part)
            case Order.START:
                self._start(job, told, part)
            case Order.STOP:
                self._stop(job, told.attempt, part)
            case Order.CLOSE:
                self._close(job, told.attempt)
            case Order.UNSPECIFIED:
                pass

    def live(self) -> bool:
        """Let ranks go on: end, fail, or run; returns whether anything happened."""
        happened = False
        for (job, attempt), part in self.parts.items():
            broken = any(e is not None and not e.clean for e in part.ranks.values())
            for rank, ended in part.ranks.items():
                if ended is not None or broken:
                    continue  # the others of a broken gang hang in a collective
                if self._chance.random() < self.odds.rank_fails:
                    self._exit(job, attempt, RankExit(rank=rank, code=1))
                    broken = happened = True
                elif self._chance.random() < self.odds.ends:
                    self._exit(job, attempt, RankExit(rank=rank))
                    happened = True
        return happened

    def forget(self) -> None:
        """Restart the agent: memory is lost, disk and processes are not."""
        self._seen.clear()
        self.outbox.clear()
        for (job, attempt), part in self.parts.items():
            self._repeat(job, attempt, part)

    def reboot(self) -> None:
        """Lose every process; the disk remembers that they ran."""
        self.boot += 1
        self._seen.clear()
        self.outbox.clear()
        for (job, attempt), part in self.parts.items():
            part.closed = True
            self._gone(job, attempt, part)
            self._repeat(job, attempt, part)

    def _repeat(self, job: JobId, attempt: int, part: Part) -> None:
        for exit_ in part.ranks.values():
            if exit_ is not None:
                self._say(job, attempt, RankExited(exit=exit_))
        if part.closed:
            self._say(job, attempt, MemberClosed(proof=self._proof()))

    def _prepare(self, job: JobId, told: Assignment, part: Part) -> None:
        if part.closed or part.prepared:
            return
        part.prepared = True
        failure = None
        if self._chance.random() < self.odds.prepare_fails:
            failure = CheckFailure(check="program", field="command", seen="missing")
        self._say(
            job,
            told.attempt,
            MemberPrepared(
                failure=failure,
                address="10.0.0.1",
                port=20000,
                versions={"spec": told.spec_digest},
            ),
        )

    def _start(self, job: JobId, told: Assignment, part: Part) -> None:
        if part.closed or part.spawned or part.stopped:
            return
        if self._chance.random() < self.odds.start_fails:
            part.spawned = True
            failure = CheckFailure(check="spawn", field="command", seen="ENOENT")
            self._say(job, told.attempt, MemberStarted(failure=failure))
            return
        part.spawned = True
        first = told.slot.first_rank
        part.ranks = dict.fromkeys(range(first, first + told.slot.ranks))
        self._sight(job, told.attempt, "spawn")
        self._say(job, told.attempt, MemberStarted(pids=(1,)))

    def _stop(self, job: JobId, attempt: int, part: Part) -> None:
        if part.stopped:
            return
        part.stopped = True
        for rank, ended in part.ranks.items():
            if ended is None:
                self._exit(job, attempt, RankExit(rank=rank, signal=15, by_us=True))
        self._say(job, attempt, MemberStopped())

    def _close(self, job: JobId, attempt: int) -> None:
        part = self.parts.setdefault((job, attempt), Part())
        if not part.closed:
            part.closed = True
            for rank, ended in part.ranks.items():
                if ended is None:
                    self._exit(job, attempt, RankExit(rank=rank, signal=9, by_us=True))
            self._gone(job, attempt, part)
        self._say(job, attempt, MemberClosed(proof=self._proof()))

    def _gone(self, job: JobId, attempt: int, part: Part) -> None:
        if part.ranks and not part.gone:
            part.gone = True
            self._sight(job, attempt, "gone")

    def _exit(self, job: JobId, attempt: int, exit_: RankExit) -> None:
        named = exit_.model_copy(update={"node": self.key.node})
        part = self.parts[job, attempt]
        part.ranks[exit_.rank] = named
        self._say(job, attempt, RankExited(exit=named))
        if None not in part.ranks.values():
            self._gone(job, attempt, part)

    def _proof(self) -> Proof:
        return Proof(node=self.key.node, how="swept")

    def _sight(self, job: JobId, attempt: int, what: str) -> None:
        self._server.advance(1e-6)  # no two sightings at one instant
        self.sightings.append(
            Sighting(self._server.now, job, attempt, self.key.node, what)
        )

    def _say(self, job: JobId, attempt: int, fact: MemberFact) -> None:
        self._said += 1
        key = MemberKey(self.key.pool, self.key.node, job, attempt)
        write = Write(key=key, event=fact, cause=f"{self.boot}:{self._said}")
        times = 2 if self._chance.random() < self.odds.said_twice else 1
        self.outbox.extend([write] * times)


def assigned_to(
    agent: SimAgent, assignments: Mapping[tuple[NodeKey, JobId], Assignment]
) -> list[tuple[JobId, Assignment]]:
    """List what one node is told now."""
    return [(job, a) for (node, job), a in assignments.items() if node == agent.key]
