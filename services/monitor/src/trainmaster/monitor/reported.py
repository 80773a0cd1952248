"""What other systems found on the nodes of a job: a finding, once per attempt. Pure.

A report is a reason to tell people and to look closer; it stops no job and moves no
work. It is raised while the attempt lives or settles, and cleared when the checks pass
or the job goes on elsewhere.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from trainmaster.core.decision import Decision, Group, Write
from trainmaster.core.ids import NodeKey
from trainmaster.core.notes import FindingCleared, FindingRaised
from trainmaster.core.record import Job, JobState
from trainmaster.monitor.settings import EVIDENCE_LINES_MAX
from trainmaster.monitor.state import NODE_REPORTED, State

_CONCERNED: Final = (
    JobState.PLACED,
    JobState.STARTING,
    JobState.RUNNING,
    JobState.STOPPING,
    JobState.SETTLING,
)
_Ill = Mapping[NodeKey, Mapping[str, str]]


def decide_reported(state: State) -> Decision:
    """Raise and clear findings about nodes of jobs; costs nothing while all is well."""
    ill = {key: node.problems for key, node in state.nodes.items() if node.problems}
    if not ill and not state.reported:
        return Decision()
    jobs = state.jobs.in_state(*_CONCERNED)
    return Decision(groups=tuple(g for job in jobs for g in _said(state, job, ill)))


def _said(state: State, job: Job, ill: _Ill) -> Iterator[Group]:
    lines = tuple(_lines(job, ill))
    known = state.reported.get(job.key)
    if lines and (known is None or known.attempt < job.attempt):
        finding = FindingRaised(
            attempt=job.attempt,
            finding=f"{NODE_REPORTED}-{job.attempt}",
            rule=NODE_REPORTED,
            summary=lines[0],
            evidence=lines[:EVIDENCE_LINES_MAX],
        )
        yield (Write(key=job.key, event=finding, cause=finding.finding),)
    elif not lines and known is not None and not known.cleared:
        cleared = FindingCleared(
            attempt=job.attempt, finding=known.finding, rule=NODE_REPORTED
        )
        yield (Write(key=job.key, event=cleared, cause=known.finding),)


def _lines(job: Job, ill: _Ill) -> Iterator[str]:
    for name in job.nodes:
        problems = ill.get(NodeKey(job.pool, name), {})
        yield from (f"{check} on {name}: {text}" for check, text in problems.items())
