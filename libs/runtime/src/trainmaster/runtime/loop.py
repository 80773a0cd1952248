"""The one loop every service runs: read, fold, decide, append, reconcile, save.

Level-triggered: a decision looks at the state, never at the delivery that caused it.
Nothing has happened until it was read back: after an append the next decision waits for
the barrier. Any unexpected error leaves the loop, and whoever runs it reloads.
"""

import asyncio
import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Generic, Protocol, TypeVar

from trainmaster.core import subjects
from trainmaster.core.decision import Changed, Decision, Policy
from trainmaster.core.envelope import Entry, Raw, Undecodable, decode
from trainmaster.core.ids import JobKey
from trainmaster.core.moment import Interval, Moment
from trainmaster.runtime.blindness import Blindness
from trainmaster.runtime.clock import ServerClock
from trainmaster.runtime.database import Database, Leader, Saved
from trainmaster.runtime.facts import Facts
from trainmaster.runtime.failpoints import FAILPOINTS
from trainmaster.runtime.heads import Heads
from trainmaster.runtime.log import Appended, Log
from trainmaster.runtime.reader import Place, StreamReader, Subscribed
from trainmaster.runtime.saver import Saver
from trainmaster.runtime.tables import Tables
from trainmaster.runtime.telemetry import Metrics

S = TypeVar("S")
S_contra = TypeVar("S_contra", contravariant=True)
BATCH_ENTRIES_MAX: Final = 500
TICK_SECONDS: Final = 1.0
_FROZEN_SECONDS: Final = 3.0
_AGAIN_SECONDS: Final = 0.01


class Effect(Protocol[S_contra]):
    """Something that follows from the state, done outside the log, again if needed."""

    def want(self, state: S_contra, changed: set[Changed] | None) -> None:
        """Take over what is wanted; `changed` is None for everything."""
        ...

    async def run(self) -> None:
        """Work until cancelled; leaves by an exception when it cannot go on."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts(Generic[S]):
    """What one loop works with."""

    policy: Policy[S]
    tables: Tables[S]
    log: Log
    database: Database
    facts: Facts
    metrics: Metrics
    epoch: int
    effects: Sequence[Effect[S]] = ()


class Loop(Generic[S]):
    """One run of a service's loop, from becoming active to losing it."""

    def __init__(self, parts: Parts[S]) -> None:
        self.parts = parts
        self.clock = ServerClock()
        self.blindness = Blindness()
        self.state = parts.tables.empty()
        self.caught_up = asyncio.Event()
        self.readers: tuple[StreamReader, ...] = ()
        self._heads = Heads()
        self._barriers: dict[str, int] = {}
        self._saver = self._make_saver()
        self._unwanted: set[Changed] | None = None
        self._due: float = 0.0
        self._turned_at = time.monotonic()
        self._stale = True

    @property
    def healthy(self) -> bool:
        """Whether this replica is active, caught up and hears the server."""
        return self.caught_up.is_set() and all(r.healthy for r in self.readers)

    async def run(self) -> None:
        """Wait to be active, then work until something goes wrong."""
        parts = self.parts
        async with parts.database.leader(schema=parts.tables.schema) as leader:
            await self._load(leader)
            parts.metrics.leading.set(1)
            try:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(leader.ping())
                    for effect in parts.effects:
                        tasks.create_task(effect.run())
                    while True:
                        await self._turn(leader)
            finally:
                parts.metrics.leading.set(0)
                self.caught_up.clear()
                for reader in self.readers:
                    await reader.close()

    async def _load(self, leader: Leader) -> None:
        parts = self.parts
        saved = await leader.load(parts.epoch)
        self.state = parts.tables.load(saved.documents)
        self._heads.by_scope.update(saved.heads)
        by_stream: dict[str, list[str]] = {}
        for subject in parts.policy.hears:
            family = subject.split(".")[1]
            by_stream.setdefault(subjects.STREAM_OF_FAMILY[family], []).append(subject)
        self.readers = tuple(
            StreamReader(
                parts.log,
                Subscribed(stream=s, filters=tuple(f), name=parts.policy.name),
                wake=parts.facts.changed,
            )
            for s, f in by_stream.items()
        )
        for reader in self.readers:
            reader.start(saved.places.get(reader.stream, Place()))
            await reader.refresh()
            self.clock.observe((await parts.log.facts(reader.stream)).at)
        self._saver = self._make_saver()
        await self._raise_barrier()
        self._remember_blindness(saved)

    def _make_saver(self) -> Saver[S]:
        return Saver(
            tables=self.parts.tables,
            epoch=self.parts.epoch,
            state=self.state,
            heads=self._heads,
            blindness=self.blindness,
            readers=self.readers,
        )

    def _remember_blindness(self, saved: Saved) -> None:
        self.blindness.intervals = [Interval(start=a, end=b) for a, b in saved.blind]
        if saved.alive_at is not None:
            self.blindness.cover(saved.alive_at, self.clock.now())

    async def _raise_barrier(self) -> None:
        for reader in self.readers:
            last = await self.parts.log.last(reader.stream, reader.filters)
            self._barriers[reader.stream] = last

    async def _turn(self, leader: Leader) -> None:
        await self._wait()
        await self._notice_blindness(leader)
        for reader in self.readers:
            if taken := reader.take(BATCH_ENTRIES_MAX):
                self.clock.observe(taken[-1].time)
                for raw in taken:
                    self._fold(raw)
                self.parts.metrics.folded.inc(len(taken))
            await reader.replenish()
        FAILPOINTS.reach(f"{self.parts.policy.name}.after_fold")
        if self._seen_own_events():
            await self._decide()
        FAILPOINTS.reach(f"{self.parts.policy.name}.before_commit")
        await self._save(leader)

    async def _wait(self) -> None:
        """Return at once if there is work, else at a wake-up, a fact or a tick."""
        wake = self.parts.facts.changed
        if not wake.is_set():
            seconds = max(0.0, self._due - time.monotonic())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await wake.wait()
        wake.clear()
        self._due = time.monotonic() + TICK_SECONDS

    async def _notice_blindness(self, leader: Leader) -> None:
        """Cover what we could not see, and reopen broken readers while active."""
        now = time.monotonic()
        gap, self._turned_at = now - self._turned_at, now
        if gap > _FROZEN_SECONDS:
            self._cover(gap)
        for reader in self.readers:
            if reader.healthy:
                continue
            blind = reader.silent_seconds
            await leader.check()  # a replaced replica must not take the consumer away
            await reader.refresh()
            await self._raise_barrier()
            self._stale = True
            self._cover(blind)

    def _cover(self, seconds: float) -> None:
        end = self.clock.now()
        self.blindness.cover(end - timedelta(seconds=seconds), end)

    def _fold(self, raw: Raw) -> None:
        entry = decode(raw)
        scope = self._heads.observe(entry)
        self._saver.note(scope)
        if isinstance(entry, Undecodable):
            self.parts.metrics.undecodable.inc()
            return
        self._fold_entry(entry, scope)

    def _fold_entry(self, entry: Entry, scope: str) -> None:
        changed = tuple(self.parts.policy.fold(self.state, entry))
        self._saver.note(scope, changed)
        if self._unwanted is not None:
            self._unwanted.update(changed)
        if entry.family == "job" and isinstance(entry.key, JobKey):
            if not changed:
                self.parts.metrics.void.inc()
            elif entry.event.kind == "archived":
                self._heads.by_scope.pop(scope, None)

    def _seen_own_events(self) -> bool:
        seen = all(r.place.seq >= self._barriers.get(r.stream, 0) for r in self.readers)
        if seen and not self.caught_up.is_set():
            self.caught_up.set()
        return seen

    async def _decide(self) -> None:
        parts = self.parts
        now = Moment(at=self.clock.now(), blind=tuple(self.blindness.intervals))
        started = time.perf_counter()
        decision = parts.policy.decide(self.state, parts.facts.current(), now)
        parts.metrics.decide_seconds.observe(time.perf_counter() - started)
        self._set_due(decision, now)
        appended = Appended()
        if decision.groups:
            FAILPOINTS.reach(f"{parts.policy.name}.before_append")
            appended = await self._append(decision)
            FAILPOINTS.reach(f"{parts.policy.name}.after_append")
        self._answer(decision, appended)
        if appended.whole:
            self._reconcile()

    async def _append(self, decision: Decision) -> Appended:
        parts = self.parts
        appended = await parts.log.append(decision.groups, self._heads)
        parts.metrics.appended.inc(sum(seq is not None for seq in appended.seqs))
        parts.metrics.refused.inc(appended.refused)
        parts.metrics.unknown.inc(appended.unknown)
        for stream, seq in appended.last.items():
            self._barriers[stream] = max(self._barriers.get(stream, 0), seq)
        if not appended.whole:
            await self._raise_barrier()
            self._due = time.monotonic() + _AGAIN_SECONDS
        return appended

    def _answer(self, decision: Decision, appended: Appended) -> None:
        for answer in decision.answers:
            if answer.group < 0:
                self.parts.facts.answer(answer.fact, answer.value)
            elif (seq := appended.seqs[answer.group]) is not None:
                self.parts.facts.answer(answer.fact, answer.value(seq))

    def _reconcile(self) -> None:
        """Hand on what is wanted; only what changed, once all was handed on."""
        changed = None if self._stale else self._unwanted
        for effect in self.parts.effects:
            effect.want(self.state, changed)
        self._unwanted, self._stale = set(), False

    def _set_due(self, decision: Decision, now: Moment) -> None:
        wait = TICK_SECONDS
        if decision.wake_at is not None:
            wait = max(0.001, (decision.wake_at - now.at).total_seconds())
        # Never longer than a tick: who sleeps on would look frozen to itself.
        self._due = time.monotonic() + min(wait, TICK_SECONDS)

    async def _save(self, leader: Leader) -> None:
        due_at = self._saver.due_at
        if time.monotonic() < due_at:
            self._due = min(self._due, due_at)
            return
        await self._saver.save(leader, self.clock.now())
        FAILPOINTS.reach(f"{self.parts.policy.name}.after_commit")
