"""What the console is made of: READ FIRST.

log ──▶ policy (fold only) ──▶ state ──▶ answers ──▶ api
bus ──▶ live: status, output ──────────▶ reading ──▶ api
bell: what changed wakes who follows it
"""

from trainmaster.console.api import routes
from trainmaster.console.bell import Bell
from trainmaster.console.live import Outlet, Status
from trainmaster.console.policy import Console
from trainmaster.console.reading import Reading
from trainmaster.console.store import tables
from trainmaster.core.access import ReadRefused
from trainmaster.runtime.auth_routes import Door
from trainmaster.runtime.service import Env, Service


def build(env: Env) -> Service:
    """Put the console together."""
    status, outlet, bell = Status(env), Outlet(env), Bell()
    reading = Reading(env, status=status, outlet=outlet, bell=bell)
    door = Door(env, ReadRefused)
    return Service(
        policy=Console(),
        tables=tables(),
        effects=(status, bell),
        api=routes(reading, guard=door.guard),
        tasks=(status.listen, outlet.listen, door.watch),
    )
