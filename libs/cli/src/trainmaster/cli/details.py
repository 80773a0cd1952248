"""Decides how one job reads on a terminal: state first, then what explains it. Pure."""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from trainmaster.cli import words
from trainmaster.cli.output import coloured
from trainmaster.cli.words import as_fields, as_list

Job = Mapping[str, Any]
_TOLD: Final = frozenset(
    {"id", "name", "state", "since", "reason", "verdict", "team", "pool", "priority"}
    | {"attempt", "nodes", "step", "loss", "restore", "waiting", "unreclaimed"}
    | {"attempts", "saved", "namesakes"}
)


def lines_of(job: Job, now: datetime | None, *, wide: bool) -> Iterator[str]:
    """Tell a job; what is not known is left out."""
    state = str(job.get("state", ""))
    since = words.age(job.get("since"), now)
    shown = coloured(state.upper(), state)
    yield f"{job.get('name', '')} ({job['id']}): {shown} for {since}"
    if job.get("reason"):
        yield _field("reason", words.line(job, "reason"))
    if job.get("verdict") and not job.get("reason"):
        yield _field("verdict", words.line(job, "verdict"))
    yield from _placement(job)
    yield from _progress(job)
    yield from _files(job)
    yield from _listed("waits for", job.get("waiting"), _waiting)
    yield from _listed("awaits proof", job.get("unreclaimed"), _unreclaimed)
    yield from _listed(
        "attempts", job.get("attempts"), lambda each: _attempt(each, now)
    )
    if wide:
        yield from _everything_else(job)


def _field(name: str, value: str) -> str:
    return f"  {name:<13} {value}"


def _placement(job: Job) -> Iterator[str]:
    named = [f"{key} {job[key]}" for key in ("team", "pool", "priority") if key in job]
    if named:
        yield _field("queue", ", ".join(named))
    spec = as_fields(job.get("spec"))
    if int(spec.get("memory_bytes_per_node") or 0):
        asked = words.size(spec["memory_bytes_per_node"])
        yield _field("memory", f"{asked} on each node")
    if job.get("attempt"):
        yield _field("attempt", f"{job['attempt']} on {words.nodes(job)}")


def _progress(job: Job) -> Iterator[str]:
    if job.get("step") is not None:
        loss = words.number(job, "loss")
        told = f"step {job['step']}"
        yield _field("progress", told if loss == words.NONE else f"{told}, loss {loss}")
    restore = as_fields(job.get("restore"))
    if restore:
        told = f"step {restore.get('step', 0)} {restore.get('path', '')}"
        yield _field("restored from", told.rstrip())


def _files(job: Job) -> Iterator[str]:
    """Say where the job's files are."""
    saved = as_fields(job.get("saved"))
    if saved:
        told = f"step {saved.get('step', 0)}, whole: {saved.get('path', '')}"
        yield _field("checkpoint", told)
    folder = as_fields(job.get("spec")).get("output_directory")
    if folder:
        yield _field("output", str(folder))


def _listed(name: str, values: Any, word: Callable[[Any], str]) -> Iterator[str]:
    """Tell a list, the name before its first line only."""
    for index, value in enumerate(as_list(values)):
        yield _field("" if index else name, word(value))


def _waiting(reason: Any) -> str:
    fields = as_fields(reason)
    return str(fields.get("message") or fields.get("code") or reason)


def _unreclaimed(owed: Any) -> str:
    fields = as_fields(owed)
    if not fields:
        return str(owed)
    where = words.nodes(fields) if "nodes" in fields else words.text(fields, "node")
    return f"attempt {words.text(fields, 'attempt')} on {where}"


def _attempt(attempt: Any, now: datetime | None) -> str:
    fields = as_fields(attempt)
    if not fields:
        return str(attempt)
    parts = [f"#{words.text(fields, 'attempt')}", words.nodes(fields)]
    if fields.get("placed_at"):
        parts.append(f"{words.age(fields['placed_at'], now)} ago")
    parts += [words.line(fields, key) for key in ("cause", "reason") if fields.get(key)]
    return "  ".join(parts)


def _everything_else(job: Job) -> Iterator[str]:
    from trainmaster.jobfile.writing import to_yaml

    rest = {key: value for key, value in job.items() if key not in _TOLD}
    if rest:
        yield ""
        yield to_yaml(rest).rstrip()
