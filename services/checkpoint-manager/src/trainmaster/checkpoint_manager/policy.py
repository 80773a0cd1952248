"""Which checkpoint, and why that one: notes about what is whole, then the choice. Pure.

Decides on what nodes found, never on a name, a pointer or an older memory: a checkpoint
is chosen only if the scan that began after the last proof found it whole.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from trainmaster.checkpoint_manager import state as state_
from trainmaster.checkpoint_manager.choice import chosen
from trainmaster.checkpoint_manager.notes import blindness, notes
from trainmaster.checkpoint_manager.state import EMPTY, State
from trainmaster.checkpoint_manager.wants import Blind, Finding, Scanned
from trainmaster.core import subjects
from trainmaster.core.decision import Answer, Changed, Decision, Group, Write
from trainmaster.core.envelope import Entry
from trainmaster.core.ids import JobKey
from trainmaster.core.moment import Moment


class CheckpointManager:
    """Says which checkpoints are whole and which one an attempt begins at."""

    name = "checkpoint-manager"
    hears = tuple(map(subjects.all_of, ("job", "note", "node")))

    def fold(self, state: State, entry: Entry) -> Iterable[Changed]:
        """Take one event in and name the rows it touched."""
        return state_.fold(state, entry)

    def decide(self, state: State, facts: Mapping[str, Any], now: Moment) -> Decision:
        """Judge every finding once: when what it says is stored, it is no fact."""
        groups: list[Group] = []
        answers: list[Answer] = []
        touched: set[JobKey] = set()
        for name, fact in facts.items():
            if not isinstance(fact, Finding) or fact.key in touched:
                continue  # a job moves once in a decision; the next finding waits
            touched.add(fact.key)
            group = tuple(_judge(state, fact, now))
            if group:
                answers.append(
                    Answer(fact=name, value=_nothing_to_say, group=len(groups))
                )
                groups.append(group)
            else:
                answers.append(Answer(fact=name, value=None))
        return Decision(groups=tuple(groups), answers=tuple(answers))


def _judge(state: State, finding: Finding, now: Moment) -> Iterator[Write]:
    """Remark and choose together, so that nobody sees the one without the other."""
    job = state.jobs.get(finding.key)
    if job is None or job.attempt != finding.attempt:
        return
    catalogue = state.catalogues.get(finding.key, EMPTY)
    match finding:
        case Blind():
            yield from blindness(job, catalogue, finding)
        case Scanned():
            yield from notes(job, catalogue, finding)
            choice = chosen(job, catalogue, finding, now.at)
            if choice is not None:
                yield Write(key=job.key, event=choice)


def _nothing_to_say(_seq: int) -> None:
    """End a finding as a fact; nobody waits for an answer."""
