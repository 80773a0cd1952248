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
