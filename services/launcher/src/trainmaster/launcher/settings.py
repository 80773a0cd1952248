"""Every limit of the launcher by name."""

from typing import Final

SERVICE: Final = "launcher"
TABLES_VERSION: Final = 1
"""Raise it when a row gets another shape; the rows are then rebuilt by replay."""

ORPHAN_SECONDS: Final = 3600.0
"""How long a report is kept whose job is not known, because MEMBERS may be read ahead
of JOBS; and how often such reports are looked for."""

EXITS_NAMED_MAX: Final = 2048
"""How many exits one `attempt_ended` carries; more would not fit into a message."""
