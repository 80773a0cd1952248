"""Decides what a job file means where no server can be asked."""

from typing import TYPE_CHECKING, Any

from trainmaster.jobfile.installation import Site
from trainmaster.jobfile.reading import Source, decoded, read

if TYPE_CHECKING:
    from trainmaster.client.client import JobFile

_STORES_ARE_UNKNOWN = Site(storage_root="storage:")


def meaning_of(file: "JobFile") -> dict[str, Any]:
    """Say what would be submitted, as the server does. Raises SpecRejectedError."""
    source = Source(
        text=decoded(file.content, file.name),
        name=file.name,
        directory=file.directory,
        json=file.json,
        job_name=file.job_name,
    )
    return read(source, _STORES_ARE_UNKNOWN).spec.model_dump(mode="json")
