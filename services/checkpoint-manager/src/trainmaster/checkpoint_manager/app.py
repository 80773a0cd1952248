"""What the checkpoint-manager is made of: a policy, its rows, a scanner of disks."""

from trainmaster.checkpoint_manager.policy import CheckpointManager
from trainmaster.checkpoint_manager.scan import Scanner
from trainmaster.checkpoint_manager.store import tables
from trainmaster.runtime.service import Env, Service


def build(env: Env) -> Service:
    """Put the checkpoint-manager together."""
    return Service(policy=CheckpointManager(), tables=tables(), effects=(Scanner(env),))
