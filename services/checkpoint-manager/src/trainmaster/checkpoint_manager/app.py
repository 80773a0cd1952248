"""What the checkpoint-manager is made of: a policy, its rows, a scanner of disks.

Other systems may hint that there is something to look at; a hint is never a proof.
"""

from trainmaster.checkpoint_manager.hints import Hints
from trainmaster.checkpoint_manager.policy import CheckpointManager
from trainmaster.checkpoint_manager.scan import Scanner
from trainmaster.checkpoint_manager.store import tables
from trainmaster.runtime.service import Env, Service


def build(env: Env) -> Service:
    """Put the checkpoint-manager together."""
    scanner = Scanner(env)
    return Service(
        policy=CheckpointManager(),
        tables=tables(),
        effects=(scanner,),
        tasks=(Hints(env, scanner.hint).run,),
    )
