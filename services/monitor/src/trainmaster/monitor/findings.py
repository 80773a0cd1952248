"""What is remarked about a job: why an attempt failed, a loss that is no number. Pure.

A finding has one name per job, attempt and rule, so that to raise it again changes
nothing. It is raised once and cleared once.
"""

import signal
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from math import isfinite
from typing import Any

from trainmaster.core.decision import Answer, Decision, Group, Write
from trainmaster.core.ids import JobKey
from trainmaster.core.messages import Progress
from trainmaster.core.moment import Moment
from trainmaster.core.notes import FindingCleared, FindingRaised
from trainmaster.core.values import RankExit
from trainmaster.monitor.observed import (
    NOT_FINITE,
    PROGRESS,
    NotFinite,
    progress_of,
)
from trainmaster.monitor.settings import (
    EVIDENCE_CHARS_MAX,
    EVIDENCE_LINES_MAX,
    FINDING_SECONDS,
)
from trainmaster.monitor.state import NAN, End, Raised, State


def decide_ends(state: State, facts: Mapping[str, Any], now: Moment) -> Decision:
    """Say of every failed attempt what failed, where and how far it was.

    Its last words may still be on their way; they are waited for while the job goes on.
    """
    groups: list[Group] = []
    due: list[datetime] = []
    for key, ends in state.ends.items():
        job = state.jobs.get(key)
        over = job is None or job.verdict_given
        for end in ends.ends:
            at = end.at + timedelta(seconds=FINDING_SECONDS)
            if at > now.at and not over:
                due.append(at)
                continue
            progress = progress_of(facts, key, end.attempt)
            groups.append(_raise(key, _ended(end, progress)))
    return Decision(groups=tuple(groups), wake_at=min(due, default=None))


def decide_losses(state: State, facts: Mapping[str, Any]) -> Decision:
    """Raise what is not finite, once per attempt, and clear what has passed."""
    groups: list[Group] = []
    answers: list[Answer] = []
    for name, fact in facts.items():
        if not (name.startswith(NOT_FINITE) and isinstance(fact, NotFinite)):
            continue
        job = state.jobs.get(fact.key)
        if job is not None and fact.attempt > job.attempt:
            continue  # the log will tell of that attempt
        raised = state.nans.get(fact.key)
        if job is None or fact.attempt < job.attempt or _is_raised(raised, fact):
            answers.append(Answer(fact=name, value=None))
        else:
            groups.append(_raise(fact.key, _not_finite(fact)))
    groups.extend(_cleared(state, facts))
    return Decision(groups=tuple(groups), answers=tuple(answers))


def _cleared(state: State, facts: Mapping[str, Any]) -> Iterator[Group]:
    progress: Mapping[JobKey, Progress] = facts.get(PROGRESS, {})
    for key, raised in state.nans.items():
        seen = progress.get(key)
        if seen is not None and seen.attempt > raised.attempt and _passed(seen, raised):
            cleared = FindingCleared(
                attempt=seen.attempt, finding=raised.finding, rule=NAN
            )
            yield (Write(key=key, event=cleared, cause=raised.finding),)


def _passed(seen: Progress, raised: Raised) -> bool:
    return seen.step > raised.step and seen.loss is not None and isfinite(seen.loss)


def _is_raised(raised: Raised | None, fact: NotFinite) -> bool:
    return raised is not None and raised.attempt >= fact.attempt


def _raise(key: JobKey, finding: FindingRaised) -> Group:
    named = finding.model_copy(update={"finding": f"{finding.rule}-{finding.attempt}"})
    return (Write(key=key, event=named, cause=named.finding),)


# ------------------------------------------------------------------------- sentences


def _not_finite(fact: NotFinite) -> FindingRaised:
    return FindingRaised(
        attempt=fact.attempt,
        rule=NAN,
        summary=f"loss is {fact.text} at step {fact.step}",
        evidence=(f"rank {fact.rank} reported loss {fact.text} at step {fact.step}",),
        step=fact.step,
    )


def _ended(end: End, progress: Progress) -> FindingRaised:
    seen = _seen(progress)
    lines = end.first.last_lines if end.first else ()
    return FindingRaised(
        attempt=end.attempt,
        rule=end.rule,
        summary=f"{_subject(end)} {seen}" if seen else _subject(end),
        evidence=tuple(
            text[:EVIDENCE_CHARS_MAX]
            for text in (end.reason, *lines[-EVIDENCE_LINES_MAX:])
            if text
        ),
        step=progress.step,
    )


def _subject(end: End) -> str:
    if end.first is None:
        where = f" on {end.node}" if end.node else ""
        return f"attempt {end.attempt} ended{where}: {end.cause}"
    where = f" on {end.first.node}" if end.first.node else ""
    return f"rank {end.first.rank}{where} {_how(end.first)}"


def _how(first: RankExit) -> str:
    if first.out_of_memory:
        return "ran out of memory"
    if first.signal:
        return f"was killed by signal {first.signal}{_name(first.signal)}"
    if first.unknown:
        return "is gone, and nobody saw how"
    return f"exited with code {first.code}"


def _name(number: int) -> str:
    known = {each.value: each.name for each in signal.Signals}
    return f" ({known[number]})" if number in known else ""


def _seen(progress: Progress) -> str:
    if not progress.step:
        return ""
    loss = "" if progress.loss is None else f", loss {progress.loss:.4g}"
    return f"after step {progress.step}{loss}"
