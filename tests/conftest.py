"""Where tests keep their servers: a folder that another account may pass through.

PostgreSQL never runs as root, so for root it runs as somebody else, who must get to its
files. A private temporary folder would have it keep them elsewhere, test after test.
"""

import os
import tempfile
from pathlib import Path

_OPEN = Path("/tmp")  # noqa: S108 - only as the place for private folders


def _passable(folder: Path) -> bool:
    resolved = folder.resolve()
    return all(each.stat().st_mode & 0o001 for each in (resolved, *resolved.parents))


if os.geteuid() == 0 and not _passable(Path(tempfile.gettempdir())) and _OPEN.is_dir():
    tempfile.tempdir = str(_OPEN)
