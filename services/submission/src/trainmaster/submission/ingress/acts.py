"""Decides what follows from each kind of thing that another system says.

A job and its end become what they are over HTTP; a metric takes the way of the ranks'
own; a saved checkpoint is a reason to look and never a proof; a node's health is a fact
on the log. What cannot be is refused with the field.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from trainmaster.core.errors import (
    AlreadyExistsError,
    Fault,
    NotFoundError,
    PermanentError,
    SpecRejectedError,
)
from trainmaster.core.ids import TOKEN, JobId, JobKey, NodeKey
from trainmaster.core.ingress import (
    CheckpointSaved,
    FieldFault,
    JobCancelRequested,
    JobRequested,
    MetricReported,
    NodeReported,
    Outcome,
    RequestAnswered,
)
from trainmaster.core.messages import MetricSample
from trainmaster.core.record import Job
from trainmaster.core.rights import Action
from trainmaster.core.subjects import RankStream
from trainmaster.jobfile.reading import Source
from trainmaster.runtime.auth import Caller
from trainmaster.runtime.http import ProblemError
from trainmaster.submission import requests
from trainmaster.submission.desk import (
    Desk,
    KeyForgottenError,
    NotPossibleError,
    Once,
)
from trainmaster.submission.ingress.checks import (
    is_below,
    is_json,
    job_faults,
    metric_faults,
    node_faults,
)
from trainmaster.submission.ingress.envelope import Arrival, From
from trainmaster.submission.ingress.ports import Sight, Speaker
from trainmaster.submission.ingress.settings import TEXT_CHARACTERS_MAX
from trainmaster.submission.settings import DEFAULT_POOL, DEFAULT_TEAM


class RefusedError(PermanentError):
    """What was said cannot be; every fault names its field."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__("; ".join(f"`{f.field}`: {f.message}" for f in faults))
        self.faults = faults


@dataclass(frozen=True, slots=True, kw_only=True)
class Acts:
    """Does what is asked, again if need be: each act is harmless when repeated."""

    desk: Desk
    sight: Sight
    speaker: Speaker

    async def act(self, arrival: Arrival, caller: Caller) -> RequestAnswered:
        """Act on what was said. Raises TransientError when it must be tried again."""
        try:
            return await self._act(arrival, caller)
        except RefusedError as error:
            return refused(arrival.sender, error.faults)
        except SpecRejectedError as error:
            return refused(arrival.sender, error.faults)
        except ProblemError as error:
            return refused(arrival.sender, (_fault("team", error),))
        except (AlreadyExistsError, KeyForgottenError) as error:
            return refused(arrival.sender, (_fault("ce-id", error),))
        except (NotFoundError, NotPossibleError) as error:
            return refused(arrival.sender, (_fault("job", error),))

    async def _act(self, arrival: Arrival, caller: Caller) -> RequestAnswered:
        sender = arrival.sender
        match arrival.said:
            case JobRequested() as said:
                return await self._job(said, arrival, caller)
            case JobCancelRequested() as said:
                return await self._cancel(said, sender, caller)
            case CheckpointSaved() as said:
                return await self._checkpoint(said, sender, caller)
            case MetricReported() as said:
                return await self._metric(said, sender, caller)
            case NodeReported() as said:
                return await self._node(said, sender, caller)

    async def _job(
        self, said: JobRequested, arrival: Arrival, caller: Caller
    ) -> RequestAnswered:
        _raise(job_faults(said))
        source = Source(
            text=said.file,
            name="file",
            directory=said.directory,
            json=is_json(said),
            job_name=said.name,
            overlay=said.overlay,
        )
        once = Once(key=key_of(arrival.sender), digest=arrival.digest)
        accepted = await self.desk.submit(source, by=caller, once=once)
        return _accepted(
            arrival.sender,
            reason=f"job {accepted.name} is submitted",
            key=accepted.key,
            seq=accepted.seq,
        )

    async def _cancel(
        self, said: JobCancelRequested, sender: From, caller: Caller
    ) -> RequestAnswered:
        key = _job_key(said.team, said.job)
        caller.require(Action.JOB_CANCEL, key.team)
        outcome = await self.desk.change(
            requests.Cancel(
                key=key,
                by=caller.subject,
                origin=caller.origin,
                reason=said.reason[:TEXT_CHARACTERS_MAX],
            )
        )
        seq = outcome.seq if isinstance(outcome, requests.Stored) else 0
        reason = "the job is to end" if seq else outcome_text(outcome)
        return _accepted(sender, reason=reason, key=key, seq=seq)

    async def _checkpoint(
        self, said: CheckpointSaved, sender: From, caller: Caller
    ) -> RequestAnswered:
        job = self._live(said.team, said.job, caller)
        directory = job.spec.checkpoint.directory
        if not directory:
            raise RefusedError(
                Fault(field="job", message="it declares no `checkpoint.directory`")
            )
        if not is_below(said.path, directory):
            message = f"{said.path!r} is no absolute path below {directory}"
            raise RefusedError(Fault(field="path", message=message))
        await self.speaker.hint(job.key, said)
        reason = "it is looked for now; only what is found whole counts"
        return _accepted(sender, reason=reason, key=job.key)

    async def _metric(
        self, said: MetricReported, sender: From, caller: Caller
    ) -> RequestAnswered:
        job = self._live(said.team, said.job, caller)
        _raise(metric_faults(said, job))
        place = RankStream(job.key, said.attempt or job.attempt, said.rank)
        sample = MetricSample(
            step=said.step, at=said.at, phase=said.phase, values=said.values
        )
        await self.speaker.metric(sender, place, sample)
        reason = f"it counts for rank {place.rank} of attempt {place.attempt}"
        return _accepted(sender, reason=reason, key=job.key)

    async def _node(
        self, said: NodeReported, sender: From, caller: Caller
    ) -> RequestAnswered:
        caller.require(Action.NODE_REPORT)
        key = NodeKey(said.pool or DEFAULT_POOL, said.node)
        node = self.sight.node(key)
        if node is None:
            message = f"pool {key.pool} has no node {key.node!r}"
            raise RefusedError(Fault(field="node", message=message))
        _raise(node_faults(said, node.problems))
        request = requests.ReportHealth(
            key=key,
            by=caller.subject,
            origin=caller.origin,
            check=said.check,
            problem=said.problem,
            evidence=said.evidence,
        )
        outcome = await self.desk.change_node(request)
        seq = outcome.seq if isinstance(outcome, requests.Stored) else 0
        return _accepted(sender, reason="" if seq else outcome_text(outcome), seq=seq)

    def _live(self, team: str, job: str, caller: Caller) -> Job:
        """Find the job that is spoken of, among those the source may speak of."""
        key = _job_key(team, job)
        caller.require(Action.JOB_REPORT, key.team)
        found = self.sight.job(key)
        if found is None:
            message = f"team {key.team} has no live job {job!r}"
            raise RefusedError(Fault(field="job", message=message))
        return found


def key_of(sender: From) -> str:
    """Name the id of a source as a key; none over HTTP can have a blank."""
    return f"in {sender.source} {sender.id}"


def refused(sender: From, faults: tuple[Fault, ...]) -> RequestAnswered:
    """Say no, with every fault."""
    return RequestAnswered(
        request=sender.id,
        kind=sender.kind,
        outcome=Outcome.REFUSED,
        reason="nothing was done",
        faults=tuple(
            FieldFault(
                field=fault.field,
                message=fault.message,
                line=fault.line,
                column=fault.column,
            )
            for fault in faults
        ),
    )


def _accepted(
    sender: From, *, reason: str, key: JobKey | None = None, seq: int = 0
) -> RequestAnswered:
    return RequestAnswered(
        request=sender.id,
        kind=sender.kind,
        outcome=Outcome.ACCEPTED,
        team=key.team if key else "",
        job=key.job if key else "",
        seq=seq,
        reason=reason,
    )


def _fault(field: str, error: PermanentError) -> Fault:
    return Fault(field=field, message=str(error))


def outcome_text(outcome: requests.Stored | requests.Already) -> str:
    """Say what was so already."""
    return outcome.message if isinstance(outcome, requests.Already) else ""


def _raise(faults: Iterator[Fault]) -> None:
    found = tuple(faults)
    if found:
        raise RefusedError(*found)


def _job_key(team: str, job: str) -> JobKey:
    key = JobKey(team or DEFAULT_TEAM, JobId(job))
    for field, value in zip(("team", "job"), key, strict=True):
        if TOKEN.fullmatch(value) is None:
            message = f"{value!r} is none" if value else "it is missing"
            raise RefusedError(Fault(field=field, message=message))
    return key
