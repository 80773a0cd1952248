"""Decides how one job reads on a terminal: state first, then what explains it. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from trainmaster.cli import words
from trainmaster.cli.output import coloured

Job = Mapping[str, Any]


def lines_of(job: Job, now: datetime | None, *, wide: bool) -> Iterator[str]:
    """Tell a job; what is not known is left out."""
    state = str(job.get("state", ""))
    since = words.age(job.get("since"), now)
    yield f"{job.get('name', '')} ({job['id']}): {coloured(state.upper(), state)} {since}"
    if job.get("reason"):
        yield _field("reason", words.line(job, "reason"))
    if job.get("verdict"):
        yield _field("verdict", words.line(job, "verdict"))
    yield from _placement(job)
    yield from _progress(job)
    yield from _listed("waits for", job.get("waiting"), _waiting)
    yield from _listed("awaits proof", job.get("unreclaimed"), _unreclaimed)
    yield from _listed("attempts", job.get("attempts"), lambda a: _attempt(a, now))
    if wide:
        yield from _everything_else(job)


def _field(name: str, value: str) -> str:
    return f"  {name:<13} {value}"


def _placement(job: Job) -> Iterator[str]:
    named = [f"{key} {job[key]}" for key in ("team", "pool", "priority") if key in job]
    if named:
        yield _field("queue", ", ".join(named))
    if job.get("attempt"):
        where = words.nodes(job)
        yield _field("attempt", f"{job['attempt']} on {where}")


def _progress(job: Job) -> Iterator[str]:
    if job.get("step") is not None:
        loss = words.number(job, "loss")
        told = f"step {job['step']}"
        yield _field("progress", told if loss == words.NONE else f"{told}, loss {loss}")
    restore = job.get("restore") or job.get("restore_point")
    if isinstance(restore, Mapping):
        told = f"step {restore.get('step', 0)} {restore.get('path', '')}"
        yield _field("restored from", told.rstrip())


def _listed(name: str, values: Any, word: Any) -> Iterator[str]:
    """Tell a list, the name before its first line only."""
    if isinstance(values, Mapping):
        values = [{"key": key, "value": value} for key, value in values.items()]
    if isinstance(values, str) or not isinstance(values, Sequence):
        return
    for index, value in enumerate(values):
        yield _field("" if index else name, word(value))


def _waiting(reason: Any) -> str:
    if isinstance(reason, Mapping):
        return str(reason.get("message") or reason.get("code") or reason)
    return str(reason)


def _unreclaimed(owed: Any) -> str:
    if not isinstance(owed, Mapping):
        return str(owed)
    if "key" in owed:  # by attempt
        return f"attempt {owed['key']} on {words.nodes(owed, 'value')}"
    where = words.nodes(owed) if "nodes" in owed else words.text(owed, "node")
    return f"attempt {words.text(owed, 'attempt')} on {where}"


def _attempt(attempt: Any, now: datetime | None) -> str:
    if not isinstance(attempt, Mapping):
        return str(attempt)
    number = attempt.get("attempt", attempt.get("number", "?"))
    began = attempt.get("placed_at") or attempt.get("started_at")
    parts = [f"#{number}", words.nodes(attempt)]
    parts += [words.age(began, now) + " ago"] if began and now else []
    parts += [str(attempt[key]) for key in ("cause", "reason") if attempt.get(key)]
    return "  ".join(parts)


_TOLD = frozenset(
    {"id", "name", "state", "since", "reason", "verdict", "team", "pool", "priority"}
    | {"attempt", "nodes", "step", "loss", "restore", "restore_point", "waiting"}
    | {"unreclaimed", "attempts"}
)


def _everything_else(job: Job) -> Iterator[str]:
    from trainmaster.cli.yaml_text import to_yaml

    rest = {key: value for key, value in job.items() if key not in _TOLD}
    if rest:
        yield ""
        yield to_yaml(rest).rstrip()
