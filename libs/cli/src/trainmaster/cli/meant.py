"""Decides which job is meant, and says so where a person may have meant another."""

from typing import TYPE_CHECKING, Final

from trainmaster.cli.output import say
from trainmaster.cli.silence import OVER

if TYPE_CHECKING:
    from trainmaster.client.client import Client
    from trainmaster.client.shapes import JobDetails

_NAMED_MAX: Final = 3


def job_meant(client: "Client", reference: str) -> "JobDetails":
    """Find a job; one of several of that name that are over is said to be the newest.

    The server itself prefers the one that is not over, and refuses several such.
    """
    job = client.job(reference)
    others = job.get("namesakes") or ()
    by_name = reference == job.get("name") and not job["id"].startswith(reference)
    if by_name and others and job["state"] in OVER:
        shown = ", ".join(others[:_NAMED_MAX])
        more = ", …" if len(others) > _NAMED_MAX else ""
        say(
            f"Several jobs were called {reference}; this is the newest, {job['id']}. "
            f"Others: {shown}{more}"
        )
    return job
