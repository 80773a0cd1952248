"""The limits of looking for checkpoints."""

from collections.abc import Mapping
from typing import Final

WATCH_SECONDS: Final = 2.0
"""How often the checkpoints of a running job are looked at."""
AGAIN_SECONDS: Final = 2.0
"""When a settling job that still waits for evidence is looked at again."""
ASK_SECONDS: Final = 5.0
"""How long one node may take to answer one question."""
BACKOFF_SECONDS: Final = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0)
"""The waits between rounds in which no node answered; the last one is kept."""
BLIND_ROUNDS: Final = 3
"""Rounds without an answer after which the job is told why it waits."""
NODES_TRIED_MAX: Final = 8
"""How many nodes are asked in one round."""
SLOTS: Final[Mapping[bool, int]] = {True: 4, False: 4}
"""Scans at once, of jobs that wait for one and of jobs that run."""
CHECKPOINTS_MAX: Final = 400
"""Checkpoints of one job that are looked at and remembered: those of highest step."""
REASONS_SHOWN_MAX: Final = 3
"""Refused checkpoints, or blind nodes, that one sentence names."""
