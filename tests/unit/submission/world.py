"""A log in memory under the real policy: what was written is folded at once."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from trainmaster.core.envelope import Entry
from trainmaster.core.errors import UnreachableError
from trainmaster.core.events import Event, Submitted
from trainmaster.core.ids import JobId, JobKey, Key
from trainmaster.core.moment import Moment
from trainmaster.core.rights import EVERY_TEAM, Grant, Role
from trainmaster.core.spec import RunAs
from trainmaster.runtime.auth import Caller
from trainmaster.runtime.facts import Facts
from trainmaster.submission.desk import Desk
from trainmaster.submission.policy import Submission
from trainmaster.submission.ports import Claim, Claimed
from trainmaster.submission.state import State
from trainmaster.testkit.builders import START, an_entry

USER = RunAs(uid=1000, gid=1000, name="ada")
NOW = Moment(at=START)
ADA = Caller(subject="ada", grants=(Grant(EVERY_TEAM, Role.SUBMITTER),))


@dataclass(slots=True)
class World:
    """Submission without servers. `mute` stores nothing and answers nobody."""

    state: State = field(default_factory=State)
    facts: Facts = field(default_factory=Facts)
    policy: Submission = field(default_factory=Submission)
    entries: list[Entry] = field(default_factory=list[Entry])
    mute: bool = False

    def store(self, key: Key, event: Event) -> int:
        entry = an_entry(event, key=key, seq=len(self.entries) + 1)
        self.entries.append(entry)
        tuple(self.policy.fold(self.state, entry))
        self.facts.changed.set()  # as a reader does
        return entry.seq

    def turn(self) -> None:
        """Decide once, as the loop does."""
        if self.mute:
            return
        decision = self.policy.decide(self.state, self.facts.current(), NOW)
        seqs = [
            max(self.store(write.key, write.event) for write in group)
            for group in decision.groups
        ]
        for answer in decision.answers:
            told = (
                answer.value if answer.group < 0 else answer.value(seqs[answer.group])
            )
            self.facts.answer(answer.fact, told)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator["World"]:
        """Decide whenever a fact changes."""

        async def run() -> None:
            while True:
                self.turn()
                await self.facts.changed.wait()
                self.facts.changed.clear()

        loop = asyncio.create_task(run())
        try:
            yield self
        finally:
            loop.cancel()
            await asyncio.wait([loop])

    def submissions(self) -> list[JobId]:
        return [
            e.key.job
            for e in self.entries
            if isinstance(e.key, JobKey) and isinstance(e.event, Submitted)
        ]

    async def seq_of(self, key: JobKey) -> int:
        """Answer for the log."""
        for entry in self.entries:
            if entry.key == key and isinstance(entry.event, Submitted):
                return entry.seq
        return 0


@dataclass(slots=True)
class FakeKeys:
    """The book of keys in memory; what the real one promises, it keeps."""

    rows: dict[str, Claimed] = field(default_factory=dict[str, Claimed])
    away: bool = False

    async def claim(self, claim: Claim) -> Claimed:
        if self.away:
            raise UnreachableError(what="PostgreSQL", address="here", hint="again")
        mine = Claimed(digest=claim.digest, job=claim.job)
        return self.rows.setdefault(claim.key, mine)

    async def release(self, key: str, job: JobId) -> None:
        if key in self.rows and self.rows[key].job == job:
            del self.rows[key]

    def grow_old(self, key: str, *, hours: float) -> None:
        row = self.rows[key]
        age = timedelta(hours=hours)
        self.rows[key] = Claimed(digest=row.digest, job=row.job, age=age)


def a_desk(world: World, keys: FakeKeys, *, trouble: str = "") -> Desk:
    return Desk(
        facts=world.facts,
        keys=keys,
        submissions=world,
        user=USER,
        trouble=lambda: trouble,
    )
