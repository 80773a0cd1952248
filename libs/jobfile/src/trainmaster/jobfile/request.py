"""Owns a job file that is right: what it asks for, and where it says so."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from trainmaster.core.errors import Fault, SpecRejectedError
from trainmaster.core.ids import JobId
from trainmaster.core.spec import JobSpec, RunAs
from trainmaster.jobfile.canonical import canonical_yaml
from trainmaster.jobfile.installation import Notice
from trainmaster.jobfile.limits import DEFAULT_TEAM
from trainmaster.jobfile.meaning import filled
from trainmaster.jobfile.report import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """A job file that is right; its paths may still have `{job}` in them."""

    spec: JobSpec
    source: str
    team: str = DEFAULT_TEAM
    notices: tuple[Notice, ...] = ()
    report: Report = field(default_factory=Report)

    def canonical(self) -> str:
        """Write the same job as a file in the canonical form."""
        return canonical_yaml(self.spec, team=self.team)

    def spec_of(self, job: JobId, user: RunAs) -> JobSpec:
        """Say what exactly this job runs, as whom."""
        return filled(self.spec, job).model_copy(update={"user": user})

    def rejected(self, faults: Sequence[Fault]) -> SpecRejectedError:
        """Say what is wrong at the places of this file."""
        return SpecRejectedError(
            source=self.source, faults=[self._placed(f) for f in faults]
        )

    def _placed(self, fault: Fault) -> Fault:
        theirs = self.report.name_of(fault.field)
        place = self.report.place_of(theirs)
        message = fault.message.replace(f"`{fault.field}", f"`{theirs}", 1)
        return Fault(
            field=theirs, message=message, line=place.line, column=place.column
        )
