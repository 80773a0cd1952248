"""Removes every process of an attempt from this node; proves it or says what is left.

An order that nothing starts any more comes first. Then: look, kill, wait, look again,
until two looks one after the other find nothing while no start is in flight. Shims go
last, by themselves, because only they can say how their ranks ended.
"""

import asyncio
import os
import signal
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from trainmaster.launcher.backends import cgroup, proc
from trainmaster.launcher.backends.directory import Directory, RankDirectory
from trainmaster.launcher.backends.model import (
    AttemptKey,
    Evidence,
    Identity,
    ProofKind,
    Sighting,
    SweepProof,
)
from trainmaster.launcher.backends.ownership import Marks, Snapshot, owned
from trainmaster.launcher.backends.pidfd import pidfd_send
from trainmaster.launcher.backends.waiting import all_gone
from trainmaster.runtime.clock import pause

SWEEP_SECONDS: Final = 15.0
QUIET_LOOKS: Final = 2
_DEATH_SECONDS: Final = 1.0  # for a killed process to leave the table
_SHIM_SECONDS: Final = 3.0  # for a shim to write its record on a slow disk
_START_SECONDS: Final = 0.02  # for a start in flight to show itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One process of an attempt at the moment of a look."""

    stat: proc.Stat
    identity: Identity
    evidence: Evidence

    @property
    def sighting(self) -> Sighting:
        """What is said about it."""
        return Sighting(
            pid=self.stat.pid,
            start_ticks=self.stat.start_ticks,
            command=self.stat.command,
            evidence=self.evidence,
        )


def look(ranks: Sequence[RankDirectory]) -> tuple[Seen, ...]:
    """Find all processes of some ranks on this machine, once."""
    stats = tuple(proc.all_stats())
    boot_id = proc.boot_id()
    since = _earliest(ranks, boot_id)
    young = (s.pid for s in stats if s.start_ticks >= since and not s.of_kernel)
    tokens = {pid: token for pid in young if (token := proc.read_token(pid))}
    snapshot = Snapshot(boot_id=boot_id, stats=stats, tokens=tokens)
    found = owned(snapshot, marks(ranks))
    return tuple(
        Seen(
            stat=stat,
            identity=Identity(
                pid=stat.pid, start_ticks=stat.start_ticks, boot_id=boot_id
            ),
            evidence=found[stat.pid],
        )
        for stat in stats
        if stat.pid in found
    )


def _earliest(ranks: Sequence[RankDirectory], boot_id: str) -> int:
    """Name the tick before which none of the ranks' processes can have started."""
    starts = [rank.started for rank in ranks if rank.request is not None]
    known = [
        start.shim.start_ticks
        for start in starts
        if start is not None and start.boot_id == boot_id
    ]
    return min(known) if known and len(known) == len(starts) else 0


def marks(ranks: Iterable[RankDirectory]) -> Marks:
    """Collect what some ranks' processes are recognised by."""
    shims: dict[Identity, int] = {}
    identities: set[Identity] = set()
    tokens: set[str] = set()
    cgroup_pids: set[int] = set()
    for rank in ranks:
        request, started, exited = rank.request, rank.started, rank.exited
        if request is not None:
            tokens |= {request.token} - {""}
        if request is not None and request.cgroup_path is not None:
            cgroup_pids |= cgroup.members(request.cgroup_path)
        if started is not None:
            lived_until = (exited or started).at_boot_seconds
            ticks = int(lived_until * proc.ticks_per_second())
            shims[started.shim_identity] = ticks
            identities.add(started.rank_identity)
    return Marks(
        shims=shims,
        ranks=frozenset(identities),
        tokens=frozenset(tokens),
        cgroup_pids=frozenset(cgroup_pids),
        spared=proc.ancestors(os.getpid()),
    )


class Sweep:
    """One sweep of one attempt."""

    def __init__(self, directory: Directory, attempt: AttemptKey) -> None:
        self._directory = directory
        self._attempt = attempt
        self._killed: dict[Identity, Sighting] = {}

    async def run(self, *, within_seconds: float) -> SweepProof:
        """Sweep until it is quiet or the time is over."""
        self._directory.close(self._attempt)
        deadline = time.monotonic() + within_seconds
        scans = quiet = 0
        while True:
            # in this order: a start that ends in between is seen by the look
            ranks = self._directory.ranks(self._attempt)
            in_flight = tuple(rank.key.rank for rank in ranks if rank.in_flight)
            seen = await asyncio.to_thread(look, ranks)
            scans += 1
            proven = [s for s in seen if s.evidence is not Evidence.DOUBTFUL]
            quiet = 0 if proven or in_flight else quiet + 1
            if quiet == QUIET_LOOKS or time.monotonic() > deadline:
                break
            await self._remove(ranks, proven)
            if in_flight:
                await pause(_START_SECONDS)
        if quiet == QUIET_LOOKS:
            _remove_cgroups(ranks)
        return SweepProof(
            attempt=self._attempt,
            clean=quiet == QUIET_LOOKS and not seen,
            kind=_kind(ranks),
            boot_id=proc.boot_id(),
            scans=scans,
            killed=tuple(self._killed.values()),
            left=tuple(s.sighting for s in seen),
            in_flight=in_flight,
        )

    async def _remove(self, ranks: Sequence[RankDirectory], seen: list[Seen]) -> None:
        """Kill what is not a shim; shims only when they are alone and will not go."""
        shims = [s for s in seen if s.evidence is Evidence.SHIM]
        others = [s for s in seen if s.evidence is not Evidence.SHIM]
        if not others:
            waiting = [shim.identity for shim in shims]
            if await all_gone(waiting, within_seconds=_SHIM_SECONDS):
                return
            others = shims
        _record(ranks, others)
        for path in _cgroups(ranks):
            cgroup.kill(path)
        for each in others:
            self._killed.setdefault(each.identity, each.sighting)
            send(each.identity, signal.SIGKILL)
        dying = [each.identity for each in others]
        await all_gone(dying, within_seconds=_DEATH_SECONDS)


def send(identity: Identity, number: int) -> bool:
    """Send a signal to exactly this process; False if it is gone or not ours."""
    pidfd = proc.open_pidfd(identity)
    if pidfd is None:
        return False
    try:
        pidfd_send(pidfd, number)
    except (ProcessLookupError, PermissionError):
        return False  # what is still there is seen by the next look
    finally:
        os.close(pidfd)
    return True


def _record(ranks: Sequence[RankDirectory], doomed: list[Seen]) -> None:
    """Write down which ranks are about to be killed."""
    identities = {each.identity for each in doomed}
    for rank in ranks:
        started = rank.started
        if started is not None and started.rank_identity in identities:
            rank.record_signal(signal.SIGKILL)


def _cgroups(ranks: Sequence[RankDirectory]) -> list[Path]:
    requests = (rank.request for rank in ranks)
    paths = (request.cgroup_path for request in requests if request is not None)
    return [path for path in paths if path is not None]


def _remove_cgroups(ranks: Sequence[RankDirectory]) -> None:
    for path in _cgroups(ranks):
        cgroup.remove(path)


def _kind(ranks: Sequence[RankDirectory]) -> ProofKind:
    """Name the strongest reason why nothing can be left."""
    started = [record for rank in ranks if (record := rank.started)]
    if not any(rank.request for rank in ranks):
        return ProofKind.NEVER_STARTED
    boot_id = proc.boot_id()
    if started and all(record.boot_id != boot_id for record in started):
        return ProofKind.BOOT_CHANGED
    return ProofKind.SWEPT
