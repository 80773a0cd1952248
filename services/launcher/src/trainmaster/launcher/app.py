"""What the launcher is made of: a policy, its rows, and ASSIGN kept equal to its state.

The agents that carry assignments out are processes of their own, `launcher.agent`.
"""

from trainmaster.core import subjects
from trainmaster.launcher.assignments import owner_of, owners, wanted
from trainmaster.launcher.policy import Launcher
from trainmaster.launcher.state import State
from trainmaster.launcher.store import tables
from trainmaster.runtime.last_values import LastValues
from trainmaster.runtime.service import Env, Service


def build(env: Env) -> Service:
    """Put the launcher together."""
    assigned = LastValues[State](
        env.log,
        stream=subjects.ASSIGN,
        owner_of_subject=owner_of,
        wanted=wanted,
        owners=owners,
    )
    return Service(policy=Launcher(), tables=tables(), effects=(assigned,))
