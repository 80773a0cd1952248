"""The console's limits by name."""

from typing import Final

FINISHED_KEPT: Final = 10_000
"""Archived jobs that can still be asked about, the newest ones."""
RECENT_EVENTS: Final = 4_096
"""Events held in memory for followers; older ones are read from the log."""
JOBS_DEFAULT: Final = 1_000
JOBS_MAX: Final = 10_000
CANDIDATES_MAX: Final = 10
NAMES_COMPARED_MAX: Final = 1_000
BEHIND_BYTES_MAX: Final = 1_000_000
"""Output a slow follower may be behind; more is skipped, and it is told."""
TAIL_LINES_MAX: Final = 100_000
QUIET_SECONDS: Final = 0.2
"""How long the last output of a job that just ended may be on its way."""
LOOK_SECONDS: Final = 5.0
"""How often a follower looks up by itself, should nobody wake it."""
CATCH_UP_SECONDS: Final = 2.0
"""How long a question about an unknown job waits for the log to be read."""
PING_SECONDS: Final = 15
REFUSALS_DEFAULT, REFUSALS_MAX = 100, 1000
SECRET_WORDS: Final = (
    "secret",
    "token",
    "passw",
    "passphrase",
    "credential",
    "api_key",
    "apikey",
    "access_key",
    "private_key",
    "auth",
)
"""A variable whose name holds one of these is shown without its value."""
