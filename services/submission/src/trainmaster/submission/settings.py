"""The limits of a request, and what a new installation begins with."""

from typing import Final

TEXT_BYTES_MAX: Final = 64 * 1024
DEPTH_MAX: Final = 8
VALUES_MAX: Final = 4000
KEY_CHARACTERS_MAX: Final = 200
"""An `Idempotency-Key` is one line of printable ASCII, at most this long."""
KEY_KNOWN_HOURS: Final = 24
"""How long a key may be repeated whose job is not on the log."""
ANSWER_SECONDS: Final = 10.0
COMMANDS_MAX: Final = 500
"""Events of one decision; the rest goes into the next one."""
READINGS_KEPT: Final = 64

DEFAULT_TEAM: Final = "default"
DEFAULT_POOL: Final = "local"
PORT_FIRST, PORT_LAST = 20000, 29999
FOUNDER: Final = "trainmaster"

NODES_MAX: Final = 10_000
PER_NODE_MAX: Final = 1_024
RETRIES_MAX: Final = 100
SECONDS_MAX: Final = 10 * 366 * 86_400.0
MEMORY_BYTES_MIN: Final = 1024**2
MEMORY_BYTES_MAX: Final = 1024**5

RESERVED_PREFIXES: Final = ("TM_", "PET_")
RESERVED_NAMES: Final = frozenset(
    {
        "CUDA_VISIBLE_DEVICES",
        "LOCAL_RANK",
        "LOCAL_WORLD_SIZE",
        "MASTER_ADDR",
        "MASTER_PORT",
        "NNODES",
        "NODE_RANK",
        "RANK",
        "TORCHELASTIC_ERROR_FILE",
        "WORLD_SIZE",
    }
)
"""Variables that the launcher sets for every rank; a job may not override them."""
