"""What a process backend is asked and what it answers, as plain values.

Identities are pid, kernel start time and boot id together; a pid alone names nobody.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Self

from trainmaster.core.ids import JobId

TOKEN_VARIABLE = "TM_SHIM_TOKEN"  # noqa: S105 - the name of a variable, not a secret


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class AttemptKey:
    """One try at running a job."""

    job: JobId
    number: int


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class RankKey:
    """One training process of an attempt."""

    attempt: AttemptKey
    rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """One process, never mistaken for a later one with the same pid."""

    pid: int
    start_ticks: int
    boot_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobUser:
    """The operating system user a rank runs as."""

    uid: int
    gid: int
    groups: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RankSpec:
    """One rank as the agent wants it; `environment` is complete, nothing is added."""

    key: RankKey
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    work_directory: Path
    log: Path
    user: JobUser | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RankRequest:
    """What is written for the shim, word by word, and the token it is found by."""

    key: RankKey
    token: str
    document: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spawned:
    """The rank's program was executed; `already` says that an earlier call did it."""

    key: RankKey
    process: Identity
    shim: Identity
    already: bool = False
    facts: Mapping[str, str] = field(default_factory=dict[str, str])


class Hindrance(StrEnum):
    """Why a rank does not run; only BUSY is worth another try."""

    STEP = "step"
    CLOSED = "closed"
    BUSY = "busy"
    SHIM_DIED = "shim_died"
    SILENT = "silent"
    UNKNOWN = "unknown"


_SENTENCES: Mapping[Hindrance, str] = {
    Hindrance.CLOSED: "the attempt is closed on this node; nothing starts in it again",
    Hindrance.BUSY: "another agent is just starting it; ask again",
    Hindrance.SHIM_DIED: "its shim died before the rank was executed: {what}",
    Hindrance.SILENT: "its shim does not answer ({what}); close the attempt",
    Hindrance.UNKNOWN: "an earlier start left processes and no record; "
    "close the attempt",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnFailed:
    """The rank was not executed; for STEP, the step, what it was given, and errno."""

    key: RankKey
    hindrance: Hindrance
    step: str = ""
    what: str = ""
    errno: int = 0

    @property
    def message(self) -> str:
        """The sentence for people: it names the thing."""
        if self.hindrance is not Hindrance.STEP:
            reason = _SENTENCES[self.hindrance].format(what=self.what)
        elif self.step == "interpreter":
            reason = f"{self.what} exists, but not the program its first line names"
        else:
            why = os.strerror(self.errno) if self.errno else "no error number"
            reason = f"{self.step} {self.what!r}: {why}"
        return f"rank {self.key.rank} was not started: {reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SentSignal:
    """A signal we sent to a rank, recorded before it was sent."""

    number: int
    at_boot_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """How a rank ended: exactly one of code, signal and unknown holds.

    `oom` is None where the kernel does not count for this rank alone. `by_us` means
    that a signal of ours came before the end, not that it was the reason.
    """

    code: int | None = None
    signal: int | None = None
    unknown: bool = False
    oom: bool | None = None
    by_us: bool = False
    at_unix_seconds: float | None = None
    pid: int | None = None

    @classmethod
    def not_known(cls, *, pid: int | None = None, by_us: bool = False) -> Self:
        """Nobody wrote down how it ended; this is never success."""
        return cls(unknown=True, pid=pid, by_us=by_us)


class Phase(StrEnum):
    """Where a rank found on disk is; the agent moves it on, the shim to EXITED."""

    STARTING = "starting"
    RUNNING = "running"
    EXITED = "exited"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A rank with a directory on this node; `alive` is about the rank itself.

    UNKNOWN: its shim is gone and left no record of the end, so that no exit code will
    come, whether the rank is still alive or not.
    """

    key: RankKey
    phase: Phase
    alive: bool = False
    process: Identity | None = None
    exit: Exit | None = None
    failure: SpawnFailed | None = None


class Evidence(StrEnum):
    """What shows that a process belongs to an attempt."""

    SHIM = "shim"
    RANK = "rank"
    TOKEN = "token"  # noqa: S105 - a word, not a secret
    CGROUP = "cgroup"
    SESSION = "session"
    DESCENDANT = "descendant"
    DOUBTFUL = "doubtful"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """A process that was seen, and why it is taken for one of the attempt's."""

    pid: int
    start_ticks: int
    command: str
    evidence: Evidence


class ProofKind(StrEnum):
    """The reason why nothing can be left; all of them are also looked at."""

    NEVER_STARTED = "never_started"
    BOOT_CHANGED = "boot_changed"
    SWEPT = "swept"


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepProof:
    """What is known to be left of an attempt on this node after a sweep.

    `clean` means that two scans one after the other found nothing, that no start is
    in flight, and that none can follow. Otherwise `left` says what could not be
    removed, or is DOUBTFUL and therefore was not touched.
    """

    attempt: AttemptKey
    clean: bool
    kind: ProofKind
    boot_id: str
    scans: int = 0
    killed: tuple[Sighting, ...] = ()
    left: tuple[Sighting, ...] = ()
    in_flight: tuple[int, ...] = ()

    @property
    def detail(self) -> str:
        """The sentence for people and for the log."""
        parts = [f"{self.scans} scans", f"killed {_names(self.killed)}"]
        if self.left:
            parts.append(f"left {_names(self.left)}")
        if self.in_flight:
            parts.append(f"ranks {self.in_flight} still starting")
        return "; ".join(parts)


def _names(sightings: tuple[Sighting, ...]) -> str:
    named = (f"{s.command} ({s.pid}, by {s.evidence.value})" for s in sightings)
    return ", ".join(named) or "nothing"
