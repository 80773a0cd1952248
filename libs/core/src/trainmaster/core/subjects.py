"""The spelling of every subject; nothing else may build or take apart one.

Two spellings of one compare-and-set scope would defeat the server's check, so the
scope of a key is written here and only here. What other systems say is not on the log:
its subjects are in `ingress_subjects`.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, assert_never

from trainmaster.core.access import AuditFact
from trainmaster.core.events import Event
from trainmaster.core.facts import MemberFact, RankExited
from trainmaster.core.ids import (
    TOKEN,
    JobId,
    JobKey,
    Key,
    MemberKey,
    NodeKey,
    PlanKey,
    PoolKey,
    TeamKey,
    TokenKey,
    token,
)
from trainmaster.core.notes import Note

JOBS, TEAMS, NODES, MEMBERS = "JOBS", "TEAMS", "NODES", "MEMBERS"
AUDIT: Final = "AUDIT"
INGRESS, REPLIES, PARKED = "INGRESS", "REPLIES", "PARKED"
ASSIGN, STATUS, OUTPUT, METRICS = "ASSIGN", "STATUS", "OUTPUT", "METRICS"

STREAM_OF_FAMILY = {
    "job": JOBS,
    "note": JOBS,
    "plan": JOBS,
    "team": TEAMS,
    "pool": TEAMS,
    "token": TEAMS,
    "audit": AUDIT,
    "node": NODES,
    "member": MEMBERS,
}
_UNCHAINED: Final = frozenset({Note.family, MemberFact.family, AuditFact.family})
"""Families whose facts are appended without compare-and-set."""
_CHAIN_TOKENS: Final = {
    "job": 4,
    "node": 4,
    "team": 3,
    "pool": 3,
    "token": 3,
    "plan": 3,
}
"""How many tokens name a chain, by family."""
_BY_NAME: Final[Mapping[str, Callable[[str], Key]]] = {
    "team": TeamKey,
    "audit": TeamKey,
    "pool": PoolKey,
    "token": TokenKey,
}
"""Families whose key is one name."""
_SUBJECT: Final = re.compile(rf"tm(\.{TOKEN.pattern})+")
_NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,8}")


class Parsed(NamedTuple):
    """A subject taken apart; `kind` is "" for a plan."""

    family: str
    key: Key
    kind: str
    rank: int = -1


def event_subject(key: Key, event: Event) -> str:
    """Where an event about `key` is stored."""
    stem = f"tm.{event.family}.{'.'.join(map(str, key))}"
    if isinstance(event, RankExited):
        return f"{stem}.{event.kind}.{event.exit.rank}"
    return f"{stem}.{event.kind}" if event.kind else stem


def scope(family: str, key: Key) -> str:
    """Name the subjects one compare-and-set looks at; "" when there is none."""
    if family in _UNCHAINED:
        return ""
    stem = f"tm.{family}.{'.'.join(map(str, key))}"
    return stem if isinstance(key, PlanKey) else f"{stem}.>"


def scope_of(subject: str) -> str:
    """Name the scope a stored subject lies in, readable or not; "" for none.

    The server counts every message below a scope, also one that nobody can read.
    """
    tokens = subject.split(".")
    family = tokens[1] if tokens[0] == "tm" and len(tokens) > 1 else ""
    length = _CHAIN_TOKENS.get(family, 0)
    stem = ".".join(tokens[:length])
    if family == "plan":
        return stem if len(tokens) == length else ""
    return f"{stem}.>" if length and len(tokens) > length else ""


def checked(key: Key) -> Key:
    """Return `key` when all its tokens may stand in a subject."""
    for name, value in zip(key._fields, key, strict=True):
        token(name, str(value))
    return key


def parse(subject: str) -> Parsed | None:  # noqa: PLR0911 one arm per family
    """Take a stored subject apart; None when it is none of ours."""
    if _SUBJECT.fullmatch(subject) is None:
        return None
    match subject.split("."):
        case ["tm", "job" | "note" as family, team, job, kind]:
            return Parsed(family, JobKey(team, JobId(job)), kind)
        case ["tm", "plan", pool]:
            return Parsed("plan", PlanKey(pool), "")
        case ["tm", "node", pool, node, kind]:
            return Parsed("node", NodeKey(pool, node), kind)
        case ["tm", family, name, kind] if family in _BY_NAME:
            return Parsed(family, _BY_NAME[family](name), kind)
        case ["tm", "member", pool, node, job, attempt, kind, *rest]:
            return _member(MemberKey(pool, node, JobId(job), 0), attempt, kind, rest)
        case _:
            return None


def _member(key: MemberKey, attempt: str, kind: str, rest: list[str]) -> Parsed | None:
    numbers = [attempt, *rest]
    wanted = 2 if kind == RankExited.kind else 1
    if len(numbers) != wanted or not all(map(_NUMBER.fullmatch, numbers)):
        return None
    rank = int(rest[0]) if rest else -1
    return Parsed("member", key._replace(attempt=int(attempt)), kind, rank)


def all_of(family: str) -> str:
    """Every subject of one family, as a filter."""
    return f"tm.{family}.>"


def assign(key: NodeKey, job: JobId) -> str:
    """Name the last-value subject of one node's part in one job."""
    return f"tm.assign.{key.pool}.{key.node}.{job}"


def assignments(key: NodeKey) -> str:
    """All assignments of one node, as a filter."""
    return f"tm.assign.{key.pool}.{key.node}.>"


def parse_assign(subject: str) -> tuple[NodeKey, JobId]:
    """Take an assignment's subject apart."""
    _, _, pool, node, job = subject.split(".")
    return NodeKey(pool, node), JobId(job)


def heartbeat(key: NodeKey) -> str:
    """Where a node's agent says that it lives."""
    return f"tm.status.node.{key.pool}.{key.node}"


def waiting(key: JobKey) -> str:
    """Where the scheduler says why a job waits."""
    return f"tm.status.waiting.{key.team}.{key.job}"


def progress(key: JobKey) -> str:
    """Where the monitor says how far a job is."""
    return f"tm.status.progress.{key.team}.{key.job}"


def output(key: JobKey, attempt: int, rank: int) -> str:
    """Where one rank's output is streamed."""
    return f"tm.out.{key.team}.{key.job}.{attempt}.{rank}"


def metric(key: JobKey, attempt: int, rank: int) -> str:
    """Where one rank's metrics are streamed."""
    return f"tm.metric.{key.team}.{key.job}.{attempt}.{rank}"


class RankStream(NamedTuple):
    """Whose output or metrics a subject carries."""

    key: JobKey
    attempt: int
    rank: int


def heartbeats() -> str:
    """Heartbeats of all nodes, as a filter."""
    return "tm.status.node.*.*"


def parse_heartbeat(subject: str) -> NodeKey | None:
    """Read whose heartbeat it is; None when it is none."""
    match _tokens(subject):
        case ["tm", "status", "node", pool, node]:
            return NodeKey(pool, node)
        case _:
            return None


def parse_waiting(subject: str) -> JobKey | None:
    """Read whose wait reasons these are; None when they are none."""
    match _tokens(subject):
        case ["tm", "status", "waiting", team, job]:
            return JobKey(team, JobId(job))
        case _:
            return None


def parse_progress(subject: str) -> JobKey | None:
    """Read whose progress it is; None when it is none."""
    match _tokens(subject):
        case ["tm", "status", "progress", team, job]:
            return JobKey(team, JobId(job))
        case _:
            return None


def parse_rank_stream(subject: str) -> RankStream | None:
    """Read whose output or metrics it is; None when it is neither."""
    match _tokens(subject):
        case ["tm", "out" | "metric", team, job, attempt, rank] if all(
            map(_NUMBER.fullmatch, (attempt, rank))
        ):
            return RankStream(JobKey(team, JobId(job)), int(attempt), int(rank))
        case _:
            return None


def _tokens(subject: str) -> list[str]:
    return subject.split(".") if _SUBJECT.fullmatch(subject) else []


def ask(key: NodeKey, question: str) -> str:
    """Where a node answers a question: scan, aside."""
    return f"tm.ask.{key.pool}.{key.node}.{question}"


def describe(key: Key) -> str:
    """Name a key for people."""
    match key:
        case JobKey():
            return f"job {key.job}"
        case TeamKey():
            return f"team {key.team}"
        case TokenKey():
            return f"token {key.token}"
        case PoolKey() | PlanKey():
            return f"pool {key.pool}"
        case NodeKey():
            return f"node {key.node}"
        case MemberKey():
            return f"attempt {key.attempt} of job {key.job} on {key.node}"
        case _:
            assert_never(key)
