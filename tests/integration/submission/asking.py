"""What tests of the door for other systems ask for again and again."""

from tests.integration.submission.others import say_behind
from tests.integration.submission.publisher import Publisher

from trainmaster.core.envelope import Entry
from trainmaster.core.events import AttemptPlaced, Event
from trainmaster.core.ids import JobId, JobKey
from trainmaster.core.ingress import Outcome, RequestAnswered
from trainmaster.core.values import MemberSlot
from trainmaster.testkit.cluster import Cluster

JOB = "name: lm\ncommand: python train.py\nwork_directory: /there\n"
SAVING = f"{JOB}checkpoint:\n  directory: /data/ckpt\n"


async def events(door: Cluster, job: str) -> list[Event]:
    """List what the log says of a job."""
    log = await door.log()
    found = await log.entries("JOBS", f"tm.job.default.{job}.>")
    return [entry.event for entry in found if isinstance(entry, Entry)]


async def a_job(ci: Publisher, id_: str, file: str = JOB) -> JobKey:
    await ci.say("job_requested", id_, file=file)
    answer = await ci.told(id_)
    assert answer.outcome is Outcome.ACCEPTED, answer
    return JobKey(answer.team, JobId(answer.job))


async def a_running_job(
    door: Cluster, ci: Publisher, id_: str, file: str = JOB
) -> JobKey:
    key = await a_job(ci, id_, file)
    slot = MemberSlot(node="n1", ranks=1)
    placed = AttemptPlaced(attempt=1, pool="local", members=(slot,))
    await say_behind(door.stack, key, placed)
    return key


def fields(answer: RequestAnswered) -> list[str]:
    assert answer.outcome is Outcome.REFUSED, answer
    return [fault.field for fault in answer.faults]
