"""How much the scheduler decides and says at once; every limit by name."""

from typing import Final

PLACEMENTS_MAX: Final = 999
"""In one plan: with its marker it is one atomic batch of the log."""
EXPLAINED_MAX: Final = 100
"""So many waiting jobs see numbers that move; those behind see stable texts."""
EXPLAIN_SECONDS: Final = 1.0
"""Reasons are revised at most this often; placements never wait for that."""
DEVICES_PER_NODE_MAX: Final = 1024
"""A node that claims more devices is taken for one with this many."""
NODES_NAMED_MAX: Final = 5
"""So many nodes does a reason name before it counts the rest."""
TEAM_DEPTH_MAX: Final = 16
"""So many teams above a team are looked at; a circle of parents ends there."""
USE_HALF_LIFE_SECONDS: Final = 24 * 3600.0
"""What a team used counts half after this time."""
AGEING_SECONDS: Final = 24 * 3600.0
"""Who has waited longer stands before everybody who has not."""
RESERVATIONS_MAX: Final = 4
"""So many blocked jobs keep nodes from those behind them."""
PREEMPTORS_MAX: Final = 2
"""So many blocked jobs of one plan may stop others."""
VICTIMS_MAX: Final = 64
"""Nobody stops more jobs than this to start."""
VICTIM_PATIENCE_SECONDS: Final = 60.0
"""Who has not gone this long after its grace is no longer waited for."""
PREEMPT_AGAIN_SECONDS: Final = 300.0
"""A job runs at least so long between two preemptions, twice as long each time."""
PREEMPT_AGAIN_DOUBLINGS_MAX: Final = 6
"""So often is that time doubled."""
COUNTERFACTUALS_JOBS_MAX: Final = 3
"""So many of the foremost jobs are told what would let them start."""
COUNTERFACTUALS_EACH_MAX: Final = 3
"""So many changes are named for one job."""
COUNTERFACTUAL_WORK_MAX: Final = 6_500
"""Nodes and lines of queues that one telling may plan again."""
TEXTS_KEPT_MAX: Final = 16_384
"""So many distinct texts for those far behind are one object each."""
