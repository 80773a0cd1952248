"""What submission is made of: READ FIRST.

    http ─ a request becomes values ──▶ desk ─ key claimed (store), asked ──▶ facts
    loop ─ facts and state ──▶ policy ─ events to append, answers ──▶ desk ──▶ http

Other systems come in by a door of their own, `ingress/app.py`, to the same desk.
The library `trainmaster.jobfile` reads the file; `http_source` says which one a request
brings.
"""

import os
import pwd

from trainmaster.core import subjects
from trainmaster.core.access import RequestRefused
from trainmaster.core.events import Submitted
from trainmaster.core.ids import JobKey
from trainmaster.core.spec import RunAs
from trainmaster.jobfile.installation import Site
from trainmaster.runtime.auth_routes import Door
from trainmaster.runtime.log import Log
from trainmaster.runtime.service import Env, Service
from trainmaster.submission.desk import Desk
from trainmaster.submission.http import routes
from trainmaster.submission.ingress.app import build as build_ingress
from trainmaster.submission.policy import Submission
from trainmaster.submission.room import RoomWatch
from trainmaster.submission.store import Keys, tables


def build(env: Env) -> Service:
    """Put the service together."""
    keys, door = Keys(env.database), Door(env, RequestRefused)
    desk = Desk(
        facts=env.facts,
        keys=keys,
        submissions=LoggedSubmissions(env.log),
        user=process_owner(),
        trouble=lambda: trouble(env),
        site=Site(storage_root=env.settings.storage_root),
    )
    api = routes(desk, guard=door.guard)
    ingress = build_ingress(env, desk, guard=door.guard)
    api.include_router(ingress.api)
    return Service(
        policy=Submission(),
        tables=tables(),
        api=api,
        tasks=(keys.open_early, RoomWatch(env).run, door.watch, *ingress.tasks),
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
    if not (loop.healthy and env.bus.connected):
        return f"the log at {env.bus.address.url} does not answer"
    return ""
