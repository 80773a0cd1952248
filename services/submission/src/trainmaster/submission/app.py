"""What submission is made of: READ FIRST.

    http ─ a request becomes values ──▶ desk ─ key claimed (store), asked ──▶ facts
    loop ─ facts and state ──▶ policy ─ events to append, answers ──▶ desk ──▶ http

`jobfile` reads the file: `yaml_text` and `json_text` make a tree with places, `schema`
says which fields there are, `meaning` fills in what is left open.
"""

import os
import pwd

from trainmaster.core import subjects
from trainmaster.core.events import Submitted
from trainmaster.core.ids import JobKey
from trainmaster.core.spec import RunAs
from trainmaster.runtime.log import Log
from trainmaster.runtime.service import Env, Service
from trainmaster.submission.desk import Desk
from trainmaster.submission.http import routes
from trainmaster.submission.policy import Submission
from trainmaster.submission.store import Keys, tables


def build(env: Env) -> Service:
    """Put the service together."""
    address = env.settings.database_url.get_secret_value().rpartition("@")[2]
    keys = Keys(env.database, address=address)
    desk = Desk(
        facts=env.facts,
        keys=keys,
        submissions=LoggedSubmissions(env.log),
        user=process_owner(),
        trouble=lambda: trouble(env),
    )
    return Service(
        policy=Submission(),
        tables=tables(),
        api=routes(desk, token=env.settings.admin_token),
        tasks=(keys.open_early,),
    )


class LoggedSubmissions:
    """Asks the log itself where a submission is."""

    def __init__(self, log: Log) -> None:
        self._log = log

    async def seq_of(self, key: JobKey) -> int:
        """Find where a job's submission is stored, 0 for nowhere."""
        subject = subjects.event_subject(key, Submitted())
        return await self._log.last(subjects.JOBS, [subject])


def process_owner() -> RunAs:
    """Name who runs this process: on one machine its jobs run as the same user."""
    uid = os.getuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:  # a container often has no entry for its user
        name = ""
    return RunAs(uid=uid, gid=os.getgid(), groups=tuple(os.getgroups()), name=name)


def trouble(env: Env) -> str:
    """Say why no request can be decided now, "" when one can."""
    loop = env.loop
    if loop is None:
        return "it is starting"
    if not loop.caught_up.is_set():
        return "it is catching up with the log, or another replica is active"
    if not loop.healthy:
        return f"the log at {env.bus.address.url} does not answer"
    return ""
