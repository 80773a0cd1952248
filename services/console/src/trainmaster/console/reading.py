"""Reads for whoever asks: a job's events and output, from memory and from the streams.

Followers look at the state and are only woken, so that nobody misses an event however
slow; output comes from the stream first and is then passed on as it is said.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus

from pydantic import ValidationError

from trainmaster.console.bell import EVERYTHING, Bell
from trainmaster.console.finding import everybody, find
from trainmaster.console.live import Outlet, Queue, Status
from trainmaster.console.output import Piece, Seen
from trainmaster.console.reasons import Now
from trainmaster.console.settings import (
    CATCH_UP_SECONDS,
    LOOK_SECONDS,
    QUIET_SECONDS,
)
from trainmaster.console.state import State, Told
from trainmaster.console.view import JobView
from trainmaster.core import subjects
from trainmaster.core.envelope import Entry, Raw, decode
from trainmaster.core.errors import UnreachableError
from trainmaster.core.ids import JobKey
from trainmaster.core.messages import OutputChunk
from trainmaster.runtime.clock import pause
from trainmaster.runtime.http import ProblemError
from trainmaster.runtime.service import Env


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputWish:
    """Whose output is wanted; None is everybody's."""

    key: JobKey
    attempt: int | None = None
    rank: int | None = None

    @property
    def subject(self) -> str:
        """Where it is stored, as a filter."""
        attempt = "*" if self.attempt is None else self.attempt
        rank = "*" if self.rank is None else self.rank
        return f"tm.out.{self.key.team}.{self.key.job}.{attempt}.{rank}"


@dataclass(slots=True)
class _Place:
    """How far a follower has read the stream."""

    seq: int = 0
    begun: bool = False


class Reading:
    """The console's state and streams, as requests need them."""

    def __init__(self, env: Env, *, status: Status, outlet: Outlet, bell: Bell) -> None:
        self._env = env
        self.status = status
        self._outlet = outlet
        self._bell = bell

    def state(self) -> State:
        """Give what is known. Raises ProblemError 503 before all was read."""
        known = self._known()
        if known is None:
            trouble = self._env.trouble or "it is still reading the log"
            raise ProblemError(
                status=HTTPStatus.SERVICE_UNAVAILABLE,
                detail=f"the console is not ready: {trouble}; ask again in a second",
                headers={"Retry-After": "1"},
            )
        return known

    def _known(self) -> State | None:
        loop = self._env.loop
        return loop.state if loop is not None and loop.caught_up.is_set() else None

    def now(self, key: JobKey) -> Now:
        """Give what is known beside a job."""
        return replace(self.status.of(key), nodes=self.state().nodes)

    # -------------------------------------------------------------------------- events

    async def view(
        self, reference: str, sees: Callable[[str], bool] = everybody
    ) -> JobView:
        """Find a job; it is missing only if the log as it is now does not have it.

        Whoever has just been told that a job was stored must find it here, so an
        unknown reference waits, for a moment, until this reader has got that far.
        """
        known = self.state()
        try:
            return find(known.jobs, reference, sees)
        except ProblemError:
            with contextlib.suppress(UnreachableError):  # then what is known must do
                await self._catch_up()
        return find(self.state().jobs, reference, sees)

    async def _catch_up(self) -> None:
        loop = self._env.loop
        if not self._env.bus.connected:
            return
        last = await self._env.log.last(subjects.JOBS, [subjects.all_of("job")])
        end = time.monotonic() + CATCH_UP_SECONDS
        with self._bell.listen(EVERYTHING) as wake:
            while loop is not None and time.monotonic() < end:
                places = {r.stream: r.place.seq for r in loop.readers}
                if places.get(subjects.JOBS, 0) >= last:
                    return
                await _woken(wake, CATCH_UP_SECONDS / 10)
                wake.clear()

    async def events(self, key: JobKey, *, after: int) -> list[Told]:
        """List a job's events behind a number, oldest first."""
        state = self.state()
        places = state.trail(key.job).places[after:]
        found = {place: state.recent.at(place) for place in places}
        if None in found.values():
            found = await self._stored(key, places)
        return [
            Told(seq=after + number, entry=entry)
            for number, place in enumerate(places, 1)
            if (entry := found.get(place)) is not None
        ]

    async def _stored(
        self, key: JobKey, places: Sequence[int]
    ) -> dict[int, Entry | None]:
        jobs = [place for place in places if place > 0]
        members = [-place for place in places if place < 0]
        found: dict[int, Entry | None] = {}
        for family in ("job", "note") if jobs else ():
            subject = f"tm.{family}.{key.team}.{key.job}.>"
            for entry in await self._entries(subjects.JOBS, subject, min(jobs)):
                found[entry.seq] = entry
        if members:
            subject = f"tm.member.*.*.{key.job}.>"
            for entry in await self._entries(subjects.MEMBERS, subject, min(members)):
                found[-entry.seq] = entry
        return found

    async def _entries(self, stream: str, subject: str, first: int) -> list[Entry]:
        history = self._env.log.history(stream, subject, after=first - 1)
        decoded = [decode(raw) async for raw in history]
        return [entry for entry in decoded if isinstance(entry, Entry)]

    async def refusals(self, count: int) -> list[Entry]:
        """Read the newest refusals, oldest first."""
        everything = subjects.all_of("audit")
        last = await self._env.log.last(subjects.AUDIT, [everything])
        return await self._entries(subjects.AUDIT, everything, max(1, last - count + 1))

    async def follow_events(self, key: JobKey, *, after: int) -> AsyncGenerator[Told]:
        """Yield a job's events as they come, until it is archived."""
        with self._bell.listen(key.job) as wake:
            while True:
                wake.clear()
                state = self._known()
                if state is not None:
                    count, gone = len(state.trail(key.job).places), _gone(state, key)
                    try:
                        told = await self.events(key, after=after)
                    except UnreachableError:
                        told, count, gone = [], after, False  # asked again below
                    for each in told:
                        yield each
                    after = max(after, count)
                    if gone:
                        return
                await _woken(wake, LOOK_SECONDS)

    async def follow_everything(self) -> AsyncGenerator[Told]:
        """Yield all events from now on; who is too slow misses the oldest."""
        state, count = self.state(), self.state().recent.count
        with self._bell.listen(EVERYTHING) as wake:
            while True:
                wake.clear()
                known = self._known()
                if known is not None and known is not state:
                    state, count = known, 0
                told = state.recent.behind(count)
                count = state.recent.count
                for each in told:
                    yield each
                await _woken(wake, LOOK_SECONDS)

    # -------------------------------------------------------------------------- output

    async def output(self, wish: OutputWish) -> AsyncGenerator[Piece]:
        """Yield the output that is stored."""
        seen = Seen()
        async for piece in self._history(wish, _Place()):
            for new in seen.new(piece):
                yield new

    async def follow_output(self, wish: OutputWish) -> AsyncGenerator[Piece]:
        """Yield stored output and what comes, until the job is over and all is told."""
        seen, place, over = Seen(), _Place(), False
        with self._bell.listen(wish.key.job) as wake:
            queue = Queue(wake=wake, attempt=wish.attempt, rank=wish.rank, gap=True)
            with self._outlet.follow(wish.key, queue):
                while True:
                    wake.clear()
                    over = self._over(wish.key)
                    try:
                        async for piece in self._next(wish, queue, place, over=over):
                            for new in seen.new(piece):
                                yield new
                    except UnreachableError:
                        queue.gap, over = True, False  # asked again below
                    if over:
                        return
                    await _woken(wake, LOOK_SECONDS)

    async def _next(
        self, wish: OutputWish, queue: Queue, place: _Place, *, over: bool
    ) -> AsyncGenerator[Piece]:
        """Yield what came since, first from the stream if some of it was not heard."""
        if over and place.begun:
            await pause(QUIET_SECONDS)  # the very last output is stored by then
        place.begun = True
        if queue.gap or over:
            queue.gap = False
            async for piece in self._history(wish, place):
                yield piece
        else:
            place.seq = max(place.seq, self._outlet.heard)
        for piece in queue.take():
            yield piece

    async def _history(self, wish: OutputWish, place: _Place) -> AsyncGenerator[Piece]:
        history = self._env.log.history(subjects.OUTPUT, wish.subject, after=place.seq)
        async for raw in history:
            place.seq = raw.seq
            piece = _piece(raw)
            if piece is not None:
                yield piece

    def _over(self, key: JobKey) -> bool:
        state = self._known()
        if state is None:
            return False
        view = state.jobs.get(key)
        return view is None or view.final


def _gone(state: State, key: JobKey) -> bool:
    view: JobView | None = state.jobs.get(key)
    return view is None or view.job.archived


def _piece(raw: Raw) -> Piece | None:
    stream = subjects.parse_rank_stream(raw.subject)
    if stream is None:
        return None
    try:
        return Piece.of(stream, OutputChunk.from_json(raw.body))
    except ValidationError:
        return None


async def _woken(wake: asyncio.Event, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await wake.wait()
