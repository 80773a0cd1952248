"""What the reaper has read, and what it decides on that."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from trainmaster.core.decision import Decision
from trainmaster.core.envelope import Entry
from trainmaster.core.events import Event
from trainmaster.core.moment import Moment
from trainmaster.core.spec import CheckpointSpec, JobSpec
from trainmaster.reaper.policy import Reaper
from trainmaster.reaper.settings import ReaperSettings
from trainmaster.reaper.state import State
from trainmaster.testkit.builders import KEY, START, a_history, a_log, a_spec, an_entry

REAPER = Reaper(ReaperSettings(evidence_seconds=60))
CRASHED = "submitted placed ordered started ended reclaimed"


def saving(**changes: Any) -> JobSpec:
    return a_spec(checkpoint=CheckpointSpec(directory="/ckpt/run"), **changes)


def folded(entries: Iterable[Entry], state: State | None = None) -> State:
    state = state or State()
    for entry in entries:
        tuple(REAPER.fold(state, entry))
    return state


def after(words: str, *notes: Event, spec: JobSpec | None = None) -> State:
    """Tell a life, one event a second, and then what was remarked."""
    log = a_log(a_history(words, spec=spec))
    state = folded(log)
    return folded(
        (an_entry(note, key=KEY, seq=seq) for seq, note in enumerate(notes, 100)), state
    )


def decide(
    state: State, *, seconds: float, facts: Mapping[str, Any] | None = None
) -> Decision:
    """Decide so long after the beginning."""
    now = Moment(at=START + timedelta(seconds=seconds))
    return REAPER.decide(state, facts or {}, now)


def said(state: State, *, seconds: float) -> list[Event]:
    decision = decide(state, seconds=seconds)
    return [write.event for group in decision.groups for write in group]
