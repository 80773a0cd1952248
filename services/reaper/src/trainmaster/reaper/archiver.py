"""Copies the log of ended jobs into the archive, before they leave all live state."""

import asyncio
from collections.abc import Iterable
from typing import Final

from trainmaster.core import subjects
from trainmaster.core.decision import Changed
from trainmaster.core.envelope import Raw
from trainmaster.core.ids import JobKey
from trainmaster.reaper.policy import ARCHIVED_FACT, archivable
from trainmaster.reaper.state import State
from trainmaster.reaper.store import Archive
from trainmaster.runtime.failpoints import FAILPOINTS
from trainmaster.runtime.service import Env

_TOGETHER: Final = 32


class Archiver:
    """An effect: wanted are archived jobs, the fact `archived:<job>` says it is so."""

    def __init__(self, env: Env, archive: Archive) -> None:
        self._env = env
        self._archive = archive
        self._waiting: dict[JobKey, None] = {}
        self._wake = asyncio.Event()

    def want(self, state: State, changed: set[Changed] | None) -> None:
        """Note the jobs that may be archived."""
        for key in _candidates(state, changed):
            self._waiting[key] = None
            self._wake.set()
        for name, each in changed or ():
            if name == "job" and isinstance(each, JobKey) and each not in state.jobs:
                self._env.facts.drop(ARCHIVED_FACT + each.job)

    async def run(self) -> None:
        """Archive until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                keys = list(self._waiting)[:_TOGETHER]
                histories = await asyncio.gather(*map(self._history, keys))
                entries = [raw for history in histories for raw in history]
                FAILPOINTS.reach("reaper.before_archive")
                await self._archive.keep(entries)
                FAILPOINTS.reach("reaper.after_archive")
                for key, history in zip(keys, histories, strict=True):
                    del self._waiting[key]
                    self._env.facts.put(ARCHIVED_FACT + key.job, len(history))

    async def _history(self, key: JobKey) -> list[Raw]:
        return [
            raw
            for family in ("job", "note")
            async for raw in self._env.log.history(
                subjects.JOBS, subjects.scope("job", key).replace("job", family, 1)
            )
        ]


def _candidates(state: State, changed: set[Changed] | None) -> Iterable[JobKey]:
    ready = {job.key for job in archivable(state)} if changed is None else set[JobKey]()
    for name, key in changed or ():
        job = state.jobs.get(key) if name == "job" and isinstance(key, JobKey) else None
        if job is not None and job.verdict_given and not job.unreclaimed:
            ready.add(job.key)
    return ready
