"""A service's loop on virtual time, one small step at a time, crashing where told.

It does what `runtime.loop` does with the same policies, tables, heads and log: fold,
barrier, decide, append, reconcile, save. What a crash loses is what a process loses.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from trainmaster.core import subjects
from trainmaster.core.decision import Changed, Decision, Policy
from trainmaster.core.envelope import Entry, decode
from trainmaster.core.moment import Moment
from trainmaster.runtime.heads import Head, Heads
from trainmaster.runtime.log import Appended, Log
from trainmaster.runtime.tables import Tables
from trainmaster.testkit.simlog import SimBus, SimServer


@dataclass(slots=True)
class Kept:
    """What survives a crash: the tables, as far as they were saved."""

    documents: dict[str, dict[str, str]] = field(
        default_factory=dict[str, dict[str, str]]
    )
    heads: dict[str, Head] = field(default_factory=dict[str, Head])
    places: dict[str, int] = field(default_factory=dict[str, int])


class SimService:
    """One replica of one service."""

    def __init__(
        self,
        policy: Policy[Any],
        tables: Callable[[], Tables[Any]],
        server: SimServer,
        chance: random.Random,
    ) -> None:
        self.policy = policy
        self.server = server
        self.bus = SimBus(server, chance)
        self.facts: dict[str, Any] = {}
        self.answered: dict[str, Any] = {}
        self.on_reconcile: Callable[[Any, set[Changed] | None], None] | None = None
        self.kept = Kept()
        self.crashes = 0
        self.wake_at: datetime | None = None
        self._tables = tables()
        self._chance = chance
        self._log = Log(self.bus, source=policy.name, epoch=1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        self._streams: dict[str, tuple[str, ...]] = {}
        self._barriers: dict[str, int] = {}
        for subject in policy.hears:
            stream = subjects.STREAM_OF_FAMILY[subject.split(".")[1]]
            self._streams[stream] = (*self._streams.get(stream, ()), subject)
        self.reload()

    def reload(self) -> None:
        """Begin again from what was saved."""
        self.state = self._tables.load(self.kept.documents)
        self._heads = Heads(by_scope=dict(self.kept.heads))
        self._places = dict(self.kept.places)
        self._dirty: set[Changed] = set()
        self._unwanted: set[Changed] | None = None
        self.wake_at = None
        self._raise_barrier()

    def behind(self) -> bool:
        """Tell whether there is something to read."""
        return any(
            self.server.last(stream, hears) > self._places.get(stream, 0)
            for stream, hears in self._streams.items()
        )

    def due(self) -> bool:
        """Tell whether a turn would do anything."""
        late = self.wake_at is not None and self.wake_at <= self.server.now
        return self.behind() or bool(self.facts) or late

    async def turn(self, *, crash: str = "") -> bool:
        """Take one turn; returns whether anything was appended."""
        self._read()
        if crash == "after_fold":
            return self._crash()
        stored = False
        if self._seen_own_events():
            appended = await self._decide(crash)
            if appended is None:
                return self._crash()
            stored = any(seq is not None for seq in appended.seqs)
        if crash == "before_commit":
            return self._crash()
        if self._chance.random() < 0.5:  # noqa: PLR2004 saving lags behind
            self._save()
        if crash == "after_commit":
            self._save()
            return self._crash()
        return stored

    def _crash(self) -> bool:
        self.crashes += 1
        self.reload()
        return False

    def _read(self) -> None:
        for stream, hears in self._streams.items():
            most = self._chance.choice((1, 2, 5, 50))
            after = self._places.get(stream, 0)
            for raw in self.server.read(stream, after, hears):
                entry = decode(raw)
                self._heads.observe(entry)
                if isinstance(entry, Entry):
                    self._note(set(self.policy.fold(self.state, entry)))
                self._places[stream] = raw.seq
                most -= 1
                if not most:
                    break

    def _note(self, changed: set[Changed]) -> None:
        self._dirty |= changed
        if self._unwanted is not None:
            self._unwanted |= changed

    async def _decide(self, crash: str) -> Appended | None:
        now = Moment(at=self.server.now)
        decision = self.policy.decide(self.state, self.facts, now)
        self.wake_at = decision.wake_at
        if crash == "before_append":
            return None
        appended = Appended()
        if decision.groups:
            appended = await self._log.append(decision.groups, self._heads)
            if crash == "after_append":
                return None
            for stream, seq in appended.last.items():
                self._barriers[stream] = max(self._barriers.get(stream, 0), seq)
            if not appended.whole:
                self._raise_barrier()
        self._answer(decision, appended)
        if appended.whole and self.on_reconcile is not None:
            self.on_reconcile(self.state, self._unwanted)
            self._unwanted = set()
        return appended

    def _answer(self, decision: Decision, appended: Appended) -> None:
        for answer in decision.answers:
            if answer.group < 0 or appended.seqs[answer.group] is not None:
                self.facts.pop(answer.fact, None)
                self.answered[answer.fact] = answer.value

    def _seen_own_events(self) -> bool:
        return all(
            self._places.get(stream, 0) >= barrier
            for stream, barrier in self._barriers.items()
        )

    def _raise_barrier(self) -> None:
        self._barriers = {
            stream: self.server.last(stream, hears)
            for stream, hears in self._streams.items()
        }

    def _save(self) -> None:
        for (name, key), body in self._tables.dump(self.state, self._dirty).items():
            rows = self.kept.documents.setdefault(name, {})
            if body is None:
                rows.pop(key, None)
            else:
                rows[key] = body
        self.kept.heads = dict(self._heads.by_scope)
        self.kept.places = dict(self._places)
        self._dirty.clear()
