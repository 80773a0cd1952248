"""How long the monitor waits and how much it keeps; every limit by name."""

from typing import Final

SILENCE_SECONDS: Final = 5.0
"""A node that has not beaten for this long is lost; never less than five beats."""
SILENCE_BEATS: Final = 5
POOL_SILENCE_FACTOR: Final = 3
"""When all of a pool are silent at once it may be the bus: wait so much longer."""
RESUMED_SECONDS: Final = 3.0
"""After a pool was silent for this long, its silence counts from its first beat."""
FACTS_SECONDS: Final = 10.0
"""A node whose facts alone change is registered anew at most this often."""
FORGET_NODE_SECONDS: Final = 3600.0
"""A node that is not heard for so long need not be remembered."""
FINDING_SECONDS: Final = 0.7
"""After an attempt's end its last lines may still be on their way."""

FLUSH_SECONDS: Final = 0.5
"""Progress of a job is published at most this often."""
LISTEN_AGAIN_SECONDS: Final = 1.0
QUEUE_MESSAGES_MAX: Final = 20_000
QUEUE_BYTES_MAX: Final = 32 * 2**20
SLICE_SECONDS: Final = 0.005
"""So long does telemetry work before it lets the loop go on."""

LINE_CHARS_MAX: Final = 4096
STREAMS_MAX: Final = 8192
JOBS_MAX: Final = 20_000
NODES_MAX: Final = 10_000
METRICS_PER_SAMPLE_MAX: Final = 64
METRIC_NAME_CHARS_MAX: Final = 128

ROWS_MAX: Final = 50_000
WRITE_SECONDS: Final = 1.0
WRITE_AGAIN_SECONDS: Final = 3.0

EVIDENCE_LINES_MAX: Final = 20
EVIDENCE_CHARS_MAX: Final = 500
