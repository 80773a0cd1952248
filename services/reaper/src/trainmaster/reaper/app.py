"""What the reaper is made of: a policy, its rows, the archive, an ear for services."""

from trainmaster.reaper.archiver import Archiver
from trainmaster.reaper.liveness import Liveness
from trainmaster.reaper.policy import Reaper
from trainmaster.reaper.retention import Retention
from trainmaster.reaper.settings import ReaperSettings
from trainmaster.reaper.store import Archive, tables
from trainmaster.runtime.service import Env, Service


def build(env: Env) -> Service:
    """Put the reaper together."""
    settings = ReaperSettings()
    archive = Archive(env.database, epoch=env.settings.epoch)
    liveness = Liveness(env, silent_seconds=settings.service_silent_seconds)
    return Service(
        policy=Reaper(settings),
        tables=tables(),
        effects=(Archiver(env, archive), Retention(env, archive, settings)),
        tasks=(liveness.run,),
    )
