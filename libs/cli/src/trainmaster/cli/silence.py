"""Decides what to say where a job has no output to show. Pure."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from trainmaster.cli import words

OVER: Final = frozenset({"succeeded", "failed", "cancelled"})
_BEFORE_START: Final = frozenset({"placed", "starting"})


def why_nothing(
    job: Mapping[str, Any],
    now: datetime | None,
    *,
    attempt: int | None,
    rank: int | None,
) -> str:
    """Say why there is no output: none can be, none is yet, or none ever was."""
    told = _impossible(job, attempt, rank)
    if not told:
        told = _over(job) if job.get("state") in OVER else _not_over(job, now)
    return told


def _over(job: Mapping[str, Any]) -> str:
    if not job.get("attempt"):
        return f"No output: the job is over and never started{_because(job)}."
    folder = words.as_fields(job.get("spec")).get("output_directory")
    files = f" The ranks' own files are below {folder}/logs." if folder else ""
    return f"No output is kept here.{files}"


def _not_over(job: Mapping[str, Any], now: datetime | None) -> str:
    state, reached = str(job.get("state", "")), job.get("attempt")
    if not reached:
        return f"No output: the job has not started yet, it is {state}{_because(job)}."
    where = f"attempt {reached} on {words.nodes(job)}"
    if state in _BEFORE_START:
        return f"No output yet: {where} is {state}, its ranks have not begun."
    if state == "running":
        since = words.age(job.get("since"), now)
        return f"No output yet: {where} runs for {since} and has written nothing."
    return f"No output yet: the job is {state}{_because(job)}."


def _because(job: Mapping[str, Any]) -> str:
    reason = words.line(job, "reason")
    return "" if reason == words.NONE else f": {reason}"


def _impossible(job: Mapping[str, Any], attempt: int | None, rank: int | None) -> str:
    reached = int(job.get("attempt") or 0)
    if attempt is not None and reached and attempt > reached:
        return f"There is no attempt {attempt}: the job's last one is {reached}."
    spec = words.as_fields(job.get("spec"))
    ranks = int(spec.get("nodes", 0)) * int(spec.get("ranks_per_node", 0))
    if rank is not None and 0 < ranks <= rank:
        return f"There is no rank {rank}: the job's last one is {ranks - 1}."
    return ""
