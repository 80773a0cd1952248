"""The limits of a request, and what a new installation begins with."""

from typing import Final

from trainmaster.jobfile import limits

TEXT_BYTES_MAX: Final = limits.TEXT_BYTES_MAX
KEY_CHARACTERS_MAX: Final = 200
"""An `Idempotency-Key` is one line of printable ASCII, at most this long."""
KEY_KNOWN_HOURS: Final = 24
"""How long a key may be repeated whose job is not on the log."""
ANSWER_SECONDS: Final = 10.0
COMMANDS_MAX: Final = 500
"""Events of one decision; the rest goes into the next one."""

LOG_SHARE_MAX: Final = 0.8
"""Of the log's bytes; beyond it no new job is taken, so that the others can end."""
ROOM_LOOK_SECONDS: Final = 2.0

DEFAULT_TEAM: Final = limits.DEFAULT_TEAM
DEFAULT_POOL: Final = limits.DEFAULT_POOL
PORT_FIRST, PORT_LAST = 20000, 29999
PORT_NUMBER_MIN, PORT_NUMBER_MAX = 1024, 65535
TOKEN_DAYS_DEFAULT: Final = 30
TOKEN_DAYS_MAX: Final = 366
FOUNDER: Final = "trainmaster"
