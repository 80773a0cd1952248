"""Decides how jobs, nodes and events read as JSON. Pure; what is secret stays out."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from trainmaster.console import reasons
from trainmaster.console.reasons import Now
from trainmaster.console.settings import SECRET_WORDS
from trainmaster.console.shelf import Shelf
from trainmaster.console.state import Told
from trainmaster.console.summaries import summary
from trainmaster.console.view import AttemptView, JobView, ended_debts
from trainmaster.core.events import Submitted
from trainmaster.core.facts import MemberFact
from trainmaster.core.ids import JobKey, MemberKey, NodeKey
from trainmaster.core.messages import Progress
from trainmaster.core.nodes import Node
from trainmaster.core.record import Job, JobState
from trainmaster.core.spec import JobSpec
from trainmaster.core.subjects import describe

Json = dict[str, Any]
REDACTED: Final = "[redacted]"


# ------------------------------------------------------------------------------- jobs


def job_row(view: JobView, now: Now) -> Json:
    """Tell a job in one row."""
    job = view.job
    progress = _current(job, now.progress)
    return {
        "id": job.key.job,
        "team": job.key.team,
        "name": job.spec.name,
        "state": job.state.value,
        "attempt": job.attempt,
        "priority": job.priority,
        "nodes": [] if job.state in reasons.WAITING else list(job.nodes),
        "step": _step(view, progress),
        "loss": None if progress is None else _number(progress.loss),
        "reason": reasons.reason(view, now),
        "submitted_at": job.submitted_at.isoformat(),
        "since": job.since.isoformat(),
        "cause": _cause(view),
    }


def job_details(view: JobView, now: Now) -> Json:
    """Tell all that is known of a job."""
    job = view.job
    return {
        **job_row(view, now),
        "pool": job.pool,
        "by": job.by,
        "attempts": [_attempt(each) for each in view.attempts],
        "waiting": [
            {"code": each.code, "message": each.message}
            for each in reasons.waits(view, now)
        ],
        "restore": _restore(job),
        "saved": _saved(view),
        "unreclaimed": [
            {
                "attempt": attempt,
                "nodes": [member.node for member in members],
                "awaits": [_awaits(attempt, member.node) for member in members],
            }
            for attempt, members in ended_debts(job).items()
        ],
        "verdict": job.verdict,
        "cancel": job.cancel and _plain(job.cancel, "by", "reason", "at"),
        "stop": job.stop and _plain(job.stop, "cause", "reason", "at"),
        "hold": job.hold or job.state is JobState.HELD,
        "retries_used": job.retries_used,
        "not_before": _time(job.not_before),
        "avoid": list(job.avoid),
        "archived": job.archived,
        "spec": redacted(job.spec).model_dump(mode="json"),
    }


def redacted(spec: JobSpec) -> JobSpec:
    """Leave out the values of variables whose names sound secret."""
    env = {k: REDACTED if _sounds_secret(k) else v for k, v in spec.env.items()}
    return spec if env == spec.env else spec.model_copy(update={"env": env})


def _sounds_secret(name: str) -> bool:
    lowered = name.lower()
    return any(word in lowered for word in SECRET_WORDS) or lowered.endswith("_key")


def _current(job: Job, progress: Progress | None) -> Progress | None:
    if progress is None or progress.attempt != job.attempt:
        return None
    return progress


def _step(view: JobView, progress: Progress | None) -> int | None:
    if progress is not None:
        return progress.step
    known = max(view.step, view.job.step)
    return known or None


def _cause(view: JobView) -> str:
    if view.job.state is JobState.STOPPING and view.job.stop is not None:
        return view.job.stop.cause.value
    return view.cause.value


def _restore(job: Job) -> Json | None:
    """Say from where the current attempt goes on, or the next one will."""
    restore = job.chosen.restore if job.chosen is not None else job.restore
    return None if restore is None else {"path": restore.path, "step": restore.step}


def _saved(view: JobView) -> Json | None:
    """Name the newest checkpoint that the job saved and that is proven whole."""
    if not view.saved_path:
        return None
    return {"path": view.saved_path, "step": view.saved_step}


def _attempt(view: AttemptView) -> Json:
    return {
        "attempt": view.attempt,
        "nodes": list(view.nodes),
        "members": [member.model_dump(mode="json") for member in view.members],
        "placed_at": _time(view.placed_at),
        "started_at": _time(view.started_at),
        "ended_at": _time(view.ended_at),
        "cause": view.cause.value,
        "reason": view.reason,
        "lost": view.lost,
        "first": view.first and view.first.model_dump(mode="json"),
        "restore_step": None if view.restore is None else view.restore.step,
        "restore_path": "" if view.restore is None else view.restore.path,
    }


def _awaits(attempt: int, node: str) -> str:
    return f"proof that nothing of attempt {attempt} is left on {node}"


def _plain(value: object, *names: str) -> Json:
    fields = {name: getattr(value, name) for name in names}
    return {k: _time(v) if k == "at" else str(v) for k, v in fields.items()}


def _time(at: Any) -> str | None:
    return None if at is None else at.isoformat()


def _number(value: float | None) -> float | str | None:
    """JSON has no word for what is not finite."""
    finite = value is None or value - value == 0
    return value if finite else str(value)


# ------------------------------------------------------------------------------ nodes


def node_rows(
    nodes: Mapping[NodeKey, Node],
    jobs: Shelf,
    sees: Callable[[str], bool] = lambda _team: True,
) -> list[Json]:
    """Tell nodes, what is charged on them, and what blocks them; jobs one may see."""
    held: dict[NodeKey, _Held] = {key: _Held() for key in nodes}
    for key in sorted(jobs.charged):
        job = jobs[key].job
        owed = ended_debts(job)
        for attempt, members in sorted(job.unreclaimed.items()):
            for member in members:
                place = held.setdefault(NodeKey(job.pool, member.node), _Held())
                place.used += len(member.accelerators)
                if not sees(key.team):
                    continue
                place.jobs[job.key.job] = None
                if attempt in owed:
                    place.blocked.append(_blocked(job, attempt))
    return [_node(k, nodes.get(k), h) for k, h in sorted(held.items())]


class _Held:
    """What one node is charged for."""

    def __init__(self) -> None:
        self.used = 0
        self.jobs: dict[str, None] = {}
        self.blocked: list[str] = []


def _blocked(job: Job, attempt: int) -> str:
    name = f" ({job.spec.name})" if job.spec.name else ""
    return f"attempt {attempt} of job {job.key.job}{name} awaits proof"


def _node(key: NodeKey, view: Node | None, held: _Held) -> Json:
    known = view or Node()
    return {
        "pool": key.pool,
        "node": key.node,
        "state": "unknown" if view is None else known.trouble or "ready",
        "reason": known.reason if known.trouble else "",
        "problems": dict(known.problems),
        "address": known.address,
        "accelerators": known.capacity.accelerators,
        "accelerators_used": held.used,
        "cpus": known.capacity.cpus,
        "memory_bytes": known.capacity.memory_bytes,
        "lost_at": _time(known.lost_at),
        "jobs": list(held.jobs),
        "blocked_by": held.blocked,
    }


# ----------------------------------------------------------------------------- events


def event_line(told: Told) -> Json:
    """Tell one event of a job's life."""
    entry = told.entry
    event = entry.event
    if isinstance(event, Submitted):
        event = event.model_copy(update={"spec": redacted(event.spec)})
    key = entry.key
    attempt = key.attempt if isinstance(key, MemberKey) else _attempt_of(event)
    return {
        "seq": told.seq,
        "time": entry.time.isoformat(),
        "type": _type(told),
        "attempt": attempt,
        "publisher": type(event).publisher,
        "summary": summary(event, key),
        "event": json.loads(event.to_json()),
    }


def live_line(told: Told) -> Json:
    """Tell one event of all there are, with whom it is about."""
    key = told.entry.key
    about = (
        key._asdict()
        if not isinstance(key, JobKey)
        else {
            "team": key.team,
            "job": key.job,
        }
    )
    return {**event_line(told), "about": about, "subject": describe(key)}


def event_lines(tolds: Iterable[Told]) -> list[Json]:
    """Tell several."""
    return [event_line(told) for told in tolds]


def _attempt_of(event: object) -> int:
    return int(getattr(event, "attempt", 0))


def _type(told: Told) -> str:
    event = told.entry.event
    if isinstance(event, MemberFact) and not event.kind.startswith("rank_"):
        return f"member_{event.kind}"
    return event.kind or event.family
