"""What the scheduler is made of: a policy, its rows, and the reasons it publishes."""

from trainmaster.core import subjects
from trainmaster.runtime.last_values import LastValues
from trainmaster.runtime.service import Env, Service
from trainmaster.scheduler import published
from trainmaster.scheduler.policy import Scheduler
from trainmaster.scheduler.state import State
from trainmaster.scheduler.store import tables


def build(env: Env) -> Service:
    """Put the scheduler together."""
    reasons = LastValues[State](
        env.log,
        stream=subjects.STATUS,
        owner_of_subject=published.owner_of,
        wanted=published.wanted,
        owners=published.owners,
    )
    return Service(policy=Scheduler(), tables=tables(), effects=(reasons,))
