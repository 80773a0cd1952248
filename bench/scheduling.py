"""One planning cycle on a cluster we do not have: 100,000 waiting jobs of 200 shapes.

The cycle is what the scheduler does between two events on a full pool: one job has
ended, its devices are free, the plan is made anew and the reasons of the foremost jobs
are told. Nothing is faked but the cluster: events are folded through the real policy,
without a log. Memory is what the process grew by.
"""

import gc
import random
import resource
import statistics
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from bench.report import Figure, report, spread
from trainmaster.core.envelope import Entry
from trainmaster.core.events import (
    AttemptEnded,
    AttemptReclaimed,
    Event,
    Submitted,
    Succeeded,
)
from trainmaster.core.facts import Capacity, NodeRegistered
from trainmaster.core.ids import EventId, JobId, JobKey, Key, NodeKey
from trainmaster.core.moment import Moment
from trainmaster.core.record import JobState
from trainmaster.core.spec import JobSpec
from trainmaster.core.values import Cause
from trainmaster.scheduler.policy import Scheduler
from trainmaster.scheduler.state import State

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
SHAPES, TEAMS, CYCLES = 200, 10, 15
NODE: Final = NodeRegistered(capacity=Capacity(accelerators=8, cpus=128))


class Cluster:
    """A scheduler that is told events one after the other."""

    def __init__(self) -> None:
        self.policy, self.state = Scheduler(), State()
        self.seq, self.at = 0, START

    def say(self, key: Key, event: Event) -> None:
        """Fold one event."""
        self.seq += 1
        self.at += timedelta(milliseconds=1)
        entry = Entry(
            stream="JOBS",
            seq=self.seq,
            time=self.at,
            family=event.family,
            key=key,
            event=event,
            id=EventId(str(self.seq)),
        )
        for _ in self.policy.fold(self.state, entry):
            pass

    def cycle(self, *, seconds: float = 0.0) -> tuple[float, int]:
        """Decide once, say what was decided; gives the seconds and the number said."""
        self.at += timedelta(seconds=seconds)
        began = time.perf_counter()
        decision = self.policy.decide(self.state, {}, Moment(at=self.at))
        elapsed = time.perf_counter() - began
        writes = [write for group in decision.groups for write in group]
        for write in writes:
            self.say(write.key, write.event)
        return elapsed, len(writes)

    def end(self, key: JobKey) -> None:
        """Let a job end well."""
        job = self.state.jobs[key]
        attempt, nodes = job.attempt, job.nodes
        self.say(key, AttemptEnded(attempt=attempt, cause=Cause.COMPLETED))
        self.say(key, AttemptReclaimed(attempt=attempt, nodes=nodes))
        self.say(key, Succeeded(attempt=attempt))


def shapes() -> list[JobSpec]:
    """Make distinct shapes: sizes, gangs, limits, priorities, memory."""
    chance = random.Random(7)
    made: dict[str, JobSpec] = {}
    while len(made) < SHAPES:
        nodes = chance.choice((1, 1, 1, 1, 2, 4, 8, 16))
        each = 8 if nodes > 1 else chance.choice((1, 1, 2, 4, 8))
        spec = JobSpec(
            command=("train",),
            nodes=nodes,
            accelerators_per_node=each,
            cpus_per_node=chance.choice((4, 8, 16)),
            time_limit_seconds=chance.choice((0.0, 3600.0, 7200.0, 86400.0)),
            priority=chance.choice((-100, 0, 0, 0)),
            topology=chance.choice(("", "", "", "rack")),
        )
        made[spec.to_json().decode()] = spec
    return list(made.values())


def full(nodes: int, waiting: int) -> Cluster:
    """Fill a pool, then let jobs queue."""
    cluster, kinds = Cluster(), shapes()
    for number in range(nodes):
        facts = {"rack": f"r{number // 16}", "zone": "z"}
        event = NODE.model_copy(update={"facts": facts})
        cluster.say(NodeKey("local", f"n{number:05}"), event)
    wanted = iter(_submissions(kinds))
    for _ in range(waiting + nodes * 8):
        cluster.say(*next(wanted))
    while cluster.cycle()[1]:
        pass
    return cluster


def _submissions(kinds: list[JobSpec]) -> Iterator[tuple[JobKey, Submitted]]:
    chance = random.Random(8)
    number = 0
    while True:
        key = JobKey(f"team-{number % TEAMS}", JobId(f"J{number:07}"))
        yield key, Submitted(spec=chance.choice(kinds), by=f"user-{number % 40}")
        number += 1


def measure(nodes: int, waiting: int) -> tuple[list[float], list[float], int]:
    """Let jobs end one by one; gives cycles without and with telling reasons."""
    cluster = full(nodes, waiting)
    gc.collect()
    gc.freeze()
    running = [job.key for job in cluster.state.jobs.in_state(JobState.PLACED)]
    chance = random.Random(9)
    plain: list[float] = []
    telling: list[float] = []
    for number, key in enumerate(chance.sample(running, 2 * CYCLES)):
        cluster.end(key)
        tells = number % 2 == 1
        elapsed, _ = cluster.cycle(seconds=2.0 if tells else 0.0)
        (telling if tells else plain).append(elapsed)
        while cluster.cycle()[1]:
            pass
    return plain, telling, cluster.state.jobs.count(JobState.QUEUED)


def _figure(name: str, seconds: list[float], budget: str) -> Figure:
    return Figure(
        name=name,
        value=statistics.median(seconds) * 1000,
        unit="ms",
        budget=budget,
        spread=spread([s * 1000 for s in seconds]),
    )


def main() -> None:
    """Measure the cycle on a thousand and on ten thousand nodes."""
    figures: list[Figure] = []
    peak = 0.0
    sizes = ((1008, 10_000, ""), (1008, 100_000, "< 100"), (10_000, 100_000, "< 500"))
    for nodes, waiting, budget in sizes:
        plain, telling, queued = measure(nodes, waiting)
        name = f"{nodes}_nodes_{waiting // 1000}k_waiting"
        figures += [
            _figure(f"cycle_{name}", plain, budget),
            _figure(f"cycle_and_reasons_{name}", telling, budget),
        ]
        print(f"{name}: {queued} jobs wait", flush=True)
        if nodes == 1008:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    figures.append(
        Figure(name="memory_1008_nodes", value=peak, unit="MiB", budget="< 1,024")
    )
    report(
        "scheduling",
        figures,
        method=f"{SHAPES} shapes of {TEAMS} teams, nodes of 8 in racks of 16; one job "
        f"ends and one cycle is made, {CYCLES} times; real policy, no log",
    )


if __name__ == "__main__":
    main()
