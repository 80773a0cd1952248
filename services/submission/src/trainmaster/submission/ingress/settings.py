"""The bounds of what other systems may say."""

from typing import Final

BODY_BYTES_MAX: Final = 256 * 1024
"""A longer message is parked unread."""
ID_CHARACTERS_MAX: Final = 128
SOURCE_CHARACTERS_MAX: Final = 200
TEXT_CHARACTERS_MAX: Final = 500
EVIDENCE_LINES_MAX: Final = 20
VALUES_MAX: Final = 64
VALUE_NAME_CHARACTERS_MAX: Final = 128
RANK_MAX: Final = 99_999
CHECKS_PER_NODE_MAX: Final = 16

LEADING_LOOK_SECONDS: Final = 0.25
"""How often it is looked whether this replica should work messages off."""
PUBLISH_SECONDS: Final = 5.0

ID_KNOWN_DAYS: Final = 14
"""So long is it known what an id was answered."""
FORGET_SECONDS: Final = 6 * 3600.0
