"""Decides which job a person means: a whole id, a unique prefix of one, or a name.

A name that several jobs have means the one that is not over, else the newest.
"""

from collections.abc import Callable
from difflib import get_close_matches
from http import HTTPStatus
from itertools import islice

from trainmaster.console.settings import CANDIDATES_MAX, NAMES_COMPARED_MAX
from trainmaster.console.shelf import Shelf
from trainmaster.console.view import JobView
from trainmaster.core.ids import JobKey
from trainmaster.runtime.http import ProblemError


def everybody(_team: str) -> bool:
    """See every team."""
    return True


def find(
    jobs: Shelf, reference: str, sees: Callable[[str], bool] = everybody
) -> JobView:
    """Find a job. Raises ProblemError: 404 for none, 409 when several fit.

    A job of a team that may not be seen is not there, and is not hinted at.
    """
    seen = (key for key in jobs.with_prefix(reference) if sees(key.team))
    begun = list(islice(seen, CANDIDATES_MAX + 1))
    if len(begun) == 1 or (begun and begun[0].job == reference):
        return jobs[begun[0]]
    named = [key for key in jobs.named(reference) if sees(key.team)]
    live = [key for key in named if not jobs[key].final]
    if len(live) > 1:
        raise _several_live(jobs, reference, live)
    if named:
        return jobs[(live or named)[0]]
    if begun:
        raise _ambiguous(jobs, reference, begun)
    raise _missing(jobs, reference, sees)


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


def namesakes(
    jobs: Shelf, view: JobView, sees: Callable[[str], bool] = everybody
) -> list[str]:
    """List other jobs of the same name, the newest first, as far as they are told."""
    named = jobs.named(view.job.spec.name)
    others = (k.job for k in named if k != view.job.key and sees(k.team))
    return list(islice(others, CANDIDATES_MAX))


def _several_live(jobs: Shelf, name: str, live: list[JobKey]) -> ProblemError:
    shown = live[:CANDIDATES_MAX]
    told = ", ".join(f"{key.job} ({jobs[key].job.state})" for key in shown)
    more = ", and more" if len(live) > CANDIDATES_MAX else ""
    return ProblemError(
        status=HTTPStatus.CONFLICT,
        detail=f"{len(live)} jobs called {name!r} are not over; "
        f"name one by its id: {told}{more}",
        members={"candidates": [key.job for key in shown]},
    )


def _missing(jobs: Shelf, reference: str, sees: Callable[[str], bool]) -> ProblemError:
    known = islice(jobs.names(), NAMES_COMPARED_MAX)
    names = [n for n in known if any(sees(key.team) for key in jobs.named(n))]
    near = get_close_matches(reference, names, n=CANDIDATES_MAX)
    hint = f"did you mean {', '.join(near)}?" if near else "`tm list` shows all"
    return ProblemError(
        status=HTTPStatus.NOT_FOUND,
        detail=f"no job has the id or name {reference!r}; {hint}",
        members={"candidates": near},
    )
