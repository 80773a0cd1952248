"""Takes old jobs off the log, once all of each is in the archive.

What there is to do is read from the log itself: the `archived` events, oldest first. Of
a job that was archived long enough ago everything before that event is purged, what its
agents reported too. The event stays for a while longer, so that whoever was away or was
just reading finds that the job is over; then it goes as well.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from trainmaster.core import subjects
from trainmaster.core.decision import Changed
from trainmaster.core.envelope import Entry, Raw, decode
from trainmaster.core.errors import UnreachableError
from trainmaster.core.events import Archived, Transition
from trainmaster.core.ids import JobKey
from trainmaster.core.job import Void, evolve
from trainmaster.core.record import Job
from trainmaster.reaper.settings import ReaperSettings
from trainmaster.reaper.state import State
from trainmaster.reaper.store import Archive
from trainmaster.runtime.clock import pause
from trainmaster.runtime.service import Env
from trainmaster.runtime.telemetry import logger

_LOOK_SECONDS: Final = 3600.0
_AGAIN_SECONDS: Final = 60.0
_ARCHIVED: Final = "tm.job.*.*.archived"
_MARKERS: Final = "tm.plan.>"


class Retention:
    """An effect that follows from the log alone, and is safe to begin again."""

    def __init__(self, env: Env, archive: Archive, settings: ReaperSettings) -> None:
        self._env = env
        self._kept = timedelta(days=settings.retention_days)
        self._traced = timedelta(days=settings.traces_days)
        self._purged = 0
        self._archive = archive
        self._log = logger(env.name)

    def want(self, state: State, changed: set[Changed] | None) -> None:
        """Want nothing of the state: old jobs are in no state any more."""
        del state, changed

    async def run(self) -> None:
        """Look now and then until cancelled."""
        self._purged = 0
        while True:
            try:
                await self.purge()
            except UnreachableError as error:
                self._log.warning("not_purged", error=str(error))
                await pause(_AGAIN_SECONDS)
            else:
                await pause(_LOOK_SECONDS)

    async def purge(self) -> None:
        """Purge what is old enough now. Raises UnreachableError."""
        await self._purge_traces()
        await self._purge_jobs()
        await self._purge_markers()

    async def _purge_traces(self) -> None:
        async for raw in self._env.log.history(subjects.JOBS, _ARCHIVED):
            if not self._is_older(raw, self._traced):
                return
            key = _key_of(raw)
            if key is None or not await self._purge_job(key, raw):
                continue
            await self._purge_subjects(subjects.JOBS, subjects.scope("job", key))

    async def _purge_jobs(self) -> None:
        log = self._env.log
        async for raw in log.history(subjects.JOBS, _ARCHIVED, after=self._purged):
            if not self._is_older(raw, self._kept):
                return
            key = _key_of(raw)
            if key is not None:
                await self._purge_job(key, raw)
            self._purged = raw.seq

    async def _purge_job(self, key: JobKey, archived: Raw) -> bool:
        """Purge all before the `archived` event; True when nothing of it is left."""
        job = subjects.scope("job", key)
        note = job.replace("job", "note", 1)
        history = [raw async for raw in self._env.log.history(subjects.JOBS, job)]
        if history[0].seq >= archived.seq:
            return True  # the job's own events go last
        if not _is_over(key, history):
            self._log.error("not_over", job=key.job, hint="its log stays; look at it")
            return False
        notes = [raw async for raw in self._env.log.history(subjects.JOBS, note)]
        await self._archive.keep([*history, *notes])
        await self._purge_subjects(subjects.MEMBERS, f"tm.member.*.*.{key.job}.>")
        for filter_, last in ((note, notes), (job, history)):
            if last:
                until = archived.seq if filter_ == job else last[-1].seq + 1
                await self._purge_subjects(subjects.JOBS, filter_, seq=until)
        self._log.info("purged", job=key.job, events=len(history) + len(notes))
        return True

    async def _purge_markers(self) -> None:
        """Keep the newest marker of every pool: plans are checked against it."""
        question = {"subjects_filter": _MARKERS}
        answer = await self._ask(f"STREAM.INFO.{subjects.JOBS}", question)
        counts: dict[str, int] = answer["state"].get("subjects") or {}
        for subject, count in counts.items():
            if count > 1:
                await self._purge_subjects(subjects.JOBS, subject, keep=1)

    async def _purge_subjects(self, stream: str, subject: str, **bound: int) -> None:
        await self._ask(f"STREAM.PURGE.{stream}", {"filter": subject, **bound})

    async def _ask(self, question: str, body: dict[str, Any]) -> dict[str, Any]:
        bus = self._env.bus
        answer = await bus.ask_api(question, body)
        if "error" in answer:
            raise UnreachableError(
                what=question, address=bus.address.url, hint=str(answer["error"])
            )
        return answer

    def _is_older(self, raw: Raw, age: timedelta) -> bool:
        loop = self._env.loop
        return loop is not None and loop.clock.now() - raw.time > age


def _key_of(archived: Raw) -> JobKey | None:
    match decode(archived):
        case Entry(key=JobKey() as key, event=Archived()):
            return key
        case _:
            return None


def _is_over(key: JobKey, history: Sequence[Raw]) -> bool:
    """Tell whether a job's whole log says that it was archived."""
    job = Job(key=key)
    for entry in map(decode, history):
        if isinstance(entry, Entry) and isinstance(entry.event, Transition):
            outcome = evolve(job, entry.event, entry.time)
            job = job if isinstance(outcome, Void) else outcome
    return job.archived
