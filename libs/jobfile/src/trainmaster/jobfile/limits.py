"""The bounds of a job file, and what it is taken to mean where it says nothing."""

from typing import Final

TEXT_BYTES_MAX: Final = 64 * 1024
DEPTH_MAX: Final = 8
VALUES_MAX: Final = 4000
FAULTS_MAX: Final = 100
"""So many faults are told; who mends them sees the rest."""

DEFAULT_TEAM: Final = "default"
DEFAULT_POOL: Final = "local"

INT32_MAX: Final = 2**31 - 1
SEED_MAX: Final = 2**63 - 1
NODES_MAX: Final = 10_000
PER_NODE_MAX: Final = 1_024
RETRIES_MAX: Final = 100
ARRAY_MAX: Final = 100_000
NAME_CHARACTERS_MAX: Final = 100
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
SYSTEM_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""What the launcher gives ranks as PATH when the job says nothing."""
