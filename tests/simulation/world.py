"""All services, nodes and users on one simulated log and one virtual clock, by seed.

Nothing here knows the right order of things: whoever has something to do may be next,
may be slow, may crash. After the storm everything is healed and must come to rest.
"""

import random
from dataclasses import replace
from typing import Any

from tests.simulation.wishes import a_wish, leave_some, save_some

from trainmaster.checkpoint_manager.choice import pick
from trainmaster.checkpoint_manager.policy import CheckpointManager
from trainmaster.checkpoint_manager.state import EMPTY
from trainmaster.checkpoint_manager.store import tables as checkpoint_tables
from trainmaster.checkpoint_manager.wants import Phase, Scanned, wanted
from trainmaster.core.decision import Changed, Write
from trainmaster.core.envelope import Entry, decode
from trainmaster.core.facts import Capacity, NodeLost, NodeRegistered
from trainmaster.core.ids import JobId, JobKey, NodeKey
from trainmaster.core.messages import Assignment, ScannedCheckpoint
from trainmaster.core.record import FINAL, Job, JobState
from trainmaster.core.values import Rejected
from trainmaster.launcher.assignments import assignments
from trainmaster.launcher.policy import Launcher
from trainmaster.launcher.store import tables as launcher_tables
from trainmaster.reaper.policy import ARCHIVED_FACT, Reaper, archivable
from trainmaster.reaper.settings import ReaperSettings
from trainmaster.reaper.store import tables as reaper_tables
from trainmaster.runtime.heads import Heads
from trainmaster.runtime.log import Log
from trainmaster.scheduler.policy import Scheduler
from trainmaster.scheduler.store import tables as scheduler_tables
from trainmaster.submission.policy import Submission
from trainmaster.submission.requests import Cancel, Hold, Release, Submit
from trainmaster.submission.store import tables as submission_tables
from trainmaster.testkit.simagent import CALM, SimAgent, assigned_to
from trainmaster.testkit.simlog import SimBus, SimServer
from trainmaster.testkit.simservice import SimService

STEPS_OF_STORM = 350
STEPS_TO_REST_MAX = 6_000
NODES, DEVICES = 3, 2
CRASHES = ("after_fold", "before_append", "after_append", "before_commit")


class World:
    """Everything of one seed."""

    def __init__(self, *, seed: int) -> None:
        self.seed = seed
        self.chance = random.Random(seed)
        self.server = SimServer()
        self.told: dict[tuple[NodeKey, JobId], Assignment] = {}
        self.submitted: list[JobKey] = []
        self.disks: dict[JobId, list[ScannedCheckpoint]] = {}
        self.storm = True
        self.heads = Heads()
        self.bus = SimBus(self.server, self.chance)
        self.log = Log(self.bus, source="agents", epoch=1)  # pyright: ignore[reportArgumentType]
        made = [
            (Submission(), submission_tables),
            (Scheduler(), scheduler_tables),
            (Scheduler(), scheduler_tables),  # a replica that believes it is active
            (Launcher(), launcher_tables),
            (CheckpointManager(), checkpoint_tables),
            (Reaper(ReaperSettings()), reaper_tables),
        ]
        self.services = [
            SimService(policy, tables, self.server, self.chance)
            for policy, tables in made
        ]
        self.submission, _, _, launcher, self.checkpoints, self.reaper = self.services
        launcher.on_reconcile = self._assign
        self.reaper.on_reconcile = self._archive
        self.checkpoints.on_reconcile = self._note_scans
        self.scans: dict[JobKey, tuple[int, Phase]] = {}
        self.agents = [
            SimAgent(NodeKey("local", f"n{i}"), self.server, self.chance)
            for i in range(NODES)
        ]

    # ------------------------------------------------------------------ the story

    async def play(self) -> None:
        """Storm, then heal, then come to rest."""
        for agent in self.agents:
            await self._register(agent)
        for service in self.services:
            service.bus.loss = 0.03
        for _ in range(STEPS_OF_STORM):
            await self._storm_step()
        await self._heal()
        for _ in range(STEPS_TO_REST_MAX):
            if self._at_rest():
                return
            await self._calm_step()
        raise AssertionError(f"seed {self.seed}: no rest: {self._unfinished()}")

    async def _storm_step(self) -> None:
        self.server.advance(self.chance.choice((0, 0.01, 0.3, 2, 20)))
        roll = self.chance.random()
        if roll < 0.1:
            self._user()
        elif roll < 0.45:
            await self._node(self.chance.choice(self.agents))
        elif roll < 0.47:
            await self._accident(self.chance.choice(self.agents))
        elif roll < 0.55:
            self._look_at_disk()
        elif roll < 0.57:
            self._purge()
        else:
            service = self.chance.choice(self.services)
            crash = self.chance.choice(CRASHES) if self.chance.random() < 0.08 else ""
            await service.turn(crash=crash)

    async def _calm_step(self) -> None:
        busy = [s for s in self.services if s.due()]
        for service in busy:
            await service.turn()
        for agent in self.agents:
            await self._node(agent)
        self._look_at_disk()
        if self._held():
            key = self._held()[0]
            self.submission.facts[f"release:{key.job}"] = Release(key=key, by="us")
        self.server.advance(0.1 if busy else 30)

    async def _heal(self) -> None:
        self.storm = False
        for service in self.services:
            service.bus.loss = 0.0
        for agent in self.agents:
            agent.odds, agent.dead = CALM, False
            await self._register(agent)

    # ------------------------------------------------------------------ who acts

    def _user(self) -> None:
        facts = self.submission.facts
        if not self.submitted or self.chance.random() < 0.5:
            key = JobKey("default", JobId(f"J{len(self.submitted)}"))
            self.submitted.append(key)
            wish = a_wish(key, self.chance)
            self.disks[key.job] = leave_some(wish, self.chance, self.server.now)
            facts[f"submit:{key.job}"] = Submit(key=key, by="us", spec=wish)
            return
        key = self.chance.choice(self.submitted)
        kind = self.chance.choice((Cancel, Hold, Release))
        facts[f"{kind.__name__}:{key.job}"] = kind(key=key, by="us")

    async def _node(self, agent: SimAgent) -> None:
        orders = assigned_to(agent, self.told)
        if self.storm:
            orders = self.chance.sample(orders, min(len(orders), 1))
        for job, told in orders:
            agent.obey(job, told)
        agent.live()
        torn = 0.2 if self.storm else 0.0
        now = self.server.now
        save_some(agent, self.disks, self.chance, torn_share=torn, now=now)
        while agent.outbox and not agent.dead:
            await self.log.append(((agent.outbox.pop(0),),), Heads())
            if self.storm and self.chance.random() < 0.3:
                return

    async def _accident(self, agent: SimAgent) -> None:
        match self.chance.choice(("forget", "reboot", "silence")):
            case "forget":
                agent.forget()
            case "reboot":
                agent.reboot()
                await self._register(agent)
            case _:
                agent.dead = not agent.dead
                if agent.dead:
                    await self._node_fact(agent, NodeLost(boot_id=str(agent.boot)))
                else:
                    await self._register(agent)

    async def _register(self, agent: SimAgent) -> None:
        capacity = Capacity(accelerators=DEVICES, cpus=8)
        await self._node_fact(
            agent, NodeRegistered(capacity=capacity, boot_id=str(agent.boot))
        )

    async def _node_fact(self, agent: SimAgent, event: Any) -> None:
        for raw in self.server.read("NODES", 0, ("tm.node.>",)):
            self.heads.observe(decode(raw))
        write = Write(key=agent.key, event=event, cause=str(self.server.now))
        await self.log.append(((write,),), self.heads)

    def _purge(self) -> None:
        """Leave of an archived job only the word that it is, however recent that is."""
        for raw in tuple(self.server.read("JOBS", 0, ("tm.job.>",))):
            _, _, team, job, kind = raw.subject.split(".")
            if kind == "archived" and self.chance.random() < 0.5:
                stems = f"tm.job.{team}.{job}.", f"tm.note.{team}.{job}."
                self.server.purge("JOBS", stems, below=raw.seq)

    # ------------------------------------------------------------------ effects

    def _assign(self, state: Any, changed: set[Changed] | None) -> None:
        keys = changed if changed is not None else {("job", k) for k in state.jobs}
        if changed is None:
            keys |= {("job", JobKey("default", job)) for _, job in self.told}
        for key in sorted({k for _, k in keys if isinstance(k, JobKey)}):
            job = state.jobs.get(key)
            for place in [p for p in self.told if p[1] == key.job]:
                del self.told[place]
            for subject, order in ({} if job is None else assignments(job)).items():
                _, _, pool, node, name = subject.split(".")
                self.told[NodeKey(pool, node), JobId(name)] = order

    def _archive(self, state: Any, _changed: set[Changed] | None) -> None:
        for job in archivable(state):
            self.reaper.facts[ARCHIVED_FACT + job.key.job] = 1
        for name in list(self.reaper.facts):
            if JobKey("default", JobId(name.split(":")[1])) not in state.jobs:
                del self.reaper.facts[name]

    def _note_scans(self, state: Any, _changed: set[Changed] | None) -> None:
        wants = {key: wanted(state, key) for key in state.jobs}
        self.scans = {
            key: (want.job.attempt, want.phase) for key, want in wants.items() if want
        }

    def _look_at_disk(self) -> None:
        for key, (attempt, phase) in list(self.scans.items()):
            saved = self.disks.get(key.job, [])
            scan = Scanned(key=key, attempt=attempt, phase=phase, own=tuple(saved))
            name = f"scan:{key.job}:{attempt}:{phase}"
            self.checkpoints.facts[name] = self._set_aside(scan)

    def _set_aside(self, scan: Scanned) -> Scanned:
        """Move what is in the way of the choice out of the framework's sight."""
        state = self.checkpoints.state
        job = state.jobs.get(scan.key)
        known = state.catalogues.get(scan.key, EMPTY)
        picked = None if job is None else pick(job, known, scan)
        if picked is None:
            return scan
        paths = {c.path for c in picked.in_the_way}
        saved = self.disks.get(scan.key.job, [])
        self.disks[scan.key.job] = [c for c in saved if c.path not in paths]
        moved = tuple(Rejected(path=path, moved_to="aside") for path in sorted(paths))
        return replace(scan, moved=moved)

    # ------------------------------------------------------------------ the end

    def entries(self) -> list[Entry]:
        """Read the whole log, all streams, in the order of time and place."""
        raws = [raw for kept in self.server.streams.values() for raw in kept]
        raws.sort(key=lambda raw: (raw.time, raw.stream == "JOBS", raw.seq))
        found = [decode(raw) for raw in raws]
        return [entry for entry in found if isinstance(entry, Entry)]

    def jobs(self) -> dict[JobKey, Job]:
        """Say what the reaper knows of the live jobs."""
        return dict(self.reaper.state.jobs)

    def _held(self) -> list[JobKey]:
        return [j.key for j in self.submission.state.jobs.in_state(JobState.HELD)]

    def _at_rest(self) -> bool:
        return not (
            any(service.state.jobs for service in self.services)
            or self.told
            or self.submission.facts
            or any(s.behind() for s in self.services)
        )

    def _unfinished(self) -> dict[str, str]:
        return {
            job.id: f"{job.state} attempt {job.attempt} owes {job.owes_proof()}"
            for job in self.jobs().values()
            if job.state not in FINAL or job.unreclaimed
        } | {"facts": str(list(self.submission.facts))}
