"""What the reaper is made of: a policy, its rows, the archiver, an ear for services."""

from trainmaster.reaper.archiver import Archiver
from trainmaster.reaper.liveness import Liveness
from trainmaster.reaper.policy import Reaper
from trainmaster.reaper.settings import ReaperSettings
from trainmaster.reaper.store import tables
from trainmaster.runtime.service import Env, Service


def build(env: Env) -> Service:
    """Put the reaper together."""
    settings = ReaperSettings()
    liveness = Liveness(env, silent_seconds=settings.service_silent_seconds)
    return Service(
        policy=Reaper(settings),
        tables=tables(),
        effects=(Archiver(env),),
        tasks=(liveness.run,),
    )
