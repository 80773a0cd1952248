"""Decides which job a person means: a whole id, a unique prefix of one, or a name."""

from difflib import get_close_matches
from http import HTTPStatus
from itertools import islice

from trainmaster.console.settings import CANDIDATES_MAX, NAMES_COMPARED_MAX
from trainmaster.console.shelf import Shelf
from trainmaster.console.view import JobView
from trainmaster.core.ids import JobKey
from trainmaster.runtime.http import ProblemError


def find(jobs: Shelf, reference: str) -> JobView:
    """Find a job. Raises ProblemError: 404 for none, 409 when several fit."""
    begun = list(islice(jobs.with_prefix(reference), CANDIDATES_MAX + 1))
    if len(begun) == 1 or (begun and begun[0].job == reference):
        return jobs[begun[0]]
    named = jobs.named(reference)
    if named is not None:
        return jobs[named]
    raise _ambiguous(jobs, reference, begun) if begun else _missing(jobs, reference)


def _ambiguous(jobs: Shelf, reference: str, begun: list[JobKey]) -> ProblemError:
    shown = begun[:CANDIDATES_MAX]
    told = ", ".join(f"{key.job} ({jobs[key].job.spec.name})" for key in shown)
    more = ", and more" if len(begun) > CANDIDATES_MAX else ""
    return ProblemError(
        status=HTTPStatus.CONFLICT,
        detail=f"{reference!r} begins the ids of several jobs; "
        f"write more of one of them: {told}{more}",
        members={"candidates": [key.job for key in shown]},
    )


def _missing(jobs: Shelf, reference: str) -> ProblemError:
    names = list(islice(jobs.names(), NAMES_COMPARED_MAX))
    near = get_close_matches(reference, names, n=CANDIDATES_MAX)
    hint = f"did you mean {', '.join(near)}?" if near else "`tm list` shows all"
    return ProblemError(
        status=HTTPStatus.NOT_FOUND,
        detail=f"no job has the id or name {reference!r}; {hint}",
        members={"candidates": near},
    )
