"""Trainings to kill services under, and what must be true of them afterwards."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.chaos.deaths import death, dies_at, start
from tests.chaos.stages import none_left

from trainmaster.core.record import JobState
from trainmaster.testkit.cluster import Cluster, until

SAVE: Final = Path(__file__).with_name("save.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """One rank that was executed, and the step it was told to resume from."""

    attempt: int
    rank: int
    resumed: int


@dataclass(slots=True, kw_only=True)
class Trainings:
    """Jobs of two nodes in one folder: each saves twice, half of them fail once."""

    running: Cluster
    folder: Path
    how: Sequence[str] = ("fail", "pass")
    spec: dict[str, object] = field(default_factory=dict[str, object])
    jobs: dict[int, str] = field(default_factory=dict[int, str])

    def submit(self, number: int) -> str:
        """Submit one; asked again with the same number it is the same job."""
        key = self._key(number)
        asked: dict[str, object] = {
            "command": ["/usr/bin/env", "python3", str(SAVE), self._how(number)],
            "nodes": 2,
            "work_directory": str(self.folder),
            "output_directory": str(self.folder / key / "out"),
            "checkpoint": {"directory": str(self.checkpoints(number))},
            "success": {"step": 2},
            "stop_grace": 1,
            **self.spec,
        }
        self.jobs[number] = self.running.submit(key, **asked)
        return self.jobs[number]

    async def under_deaths(
        self, name: str, points: Sequence[str], *, together: int = 1
    ) -> None:
        """Train, some jobs at a time, until a process has died at all of the points."""
        async with asyncio.TaskGroup() as tasks:
            deaths = tasks.create_task(dies_at(self.running, name, points))
            while not deaths.done():
                await self._train(together)

    async def one_for_each_death(self, name: str, points: Sequence[str]) -> None:
        """Let a process die at each of the points in the time of a job of its own."""
        for point in points:
            self.running.kill(name)
            start(self.running, name, failpoints=point)
            job = self.submit(len(self.jobs))
            await death(self.running, name, point)
            start(self.running, name)
            await self.running.final(job)

    async def _train(self, together: int) -> None:
        first = len(self.jobs)
        jobs = [self.submit(first + i) for i in range(together)]
        for job in jobs:
            await self.running.final(job)

    async def check_all_well(self) -> None:
        """Hold all jobs, and the whole log, to what must be true after any death."""
        running, jobs = self.running, list(self.jobs.values())
        assert len(set(jobs)) == len(jobs)
        ends = {job: await running.final(job) for job in jobs}
        verdicts = {job: (await running.job(job)).verdict for job in jobs}
        assert ends == dict.fromkeys(jobs, JobState.SUCCEEDED), verdicts
        await until("all ready again", running.all_ready)
        await until("all archived, nothing owed", self._all_archived)
        await none_left(running, jobs)
        for number in self.jobs:
            self.check_starts(number)
        assert await running.broken_rules(accepted=jobs) == []

    def check_starts(self, number: int) -> None:
        """No rank of an attempt was executed twice; retries went on at a checkpoint."""
        starts = self.starts(number)
        ranks = [(start.attempt, start.rank) for start in starts]
        assert len(set(ranks)) == len(ranks), starts
        assert {rank for _, rank in ranks} == {0, 1}, starts
        # one of another cause than the training's own may come before its first save
        assert {s.resumed for s in starts if s.attempt == 1} == {0}, starts

    def starts(self, number: int) -> list[Start]:
        """List all ranks that were executed, in that order."""
        text = (self.folder / self._key(number) / "out" / "starts").read_text()
        rows = (map(int, line.split()) for line in text.splitlines())
        return [Start(attempt=a, rank=rank, resumed=step) for a, rank, step in rows]

    def checkpoints(self, number: int) -> Path:
        """Name the folder of one job's checkpoints."""
        return self.folder / self._key(number) / "ckpt"

    def failing(self) -> list[int]:
        """List the jobs whose first attempt does not end well."""
        return [number for number in self.jobs if self._how(number) != "pass"]

    async def _all_archived(self) -> bool:
        found = [await self.running.job(job) for job in self.jobs.values()]
        return all(job.archived and not job.unreclaimed for job in found)

    def _how(self, number: int) -> str:
        return self.how[number % len(self.how)]

    def _key(self, number: int) -> str:
        return f"{self.folder.name}-{number}"[-60:]
