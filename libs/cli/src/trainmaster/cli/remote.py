"""Owns how a command comes to its server."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from trainmaster.cli.output import say
from trainmaster.client.credentials import Credentials, find_credentials

if TYPE_CHECKING:
    from trainmaster.client.client import Client


def connect(data_directory: Path | None) -> "Client":
    """Open the server that is meant. Raises UnreachableError when none is known."""
    credentials = find_credentials(data_directory)
    return _client(credentials)


def _client(credentials: Credentials) -> "Client":
    # httpx brings a command line of its own, which is more than half of its import and
    # of most of our commands' time. It copes when that part is not there.
    modules: dict[str, Any] = cast("dict[str, Any]", sys.modules)
    modules.setdefault("httpx._main", None)
    from trainmaster.client.client import Client
    from trainmaster.client.wire import Manner

    return Client(credentials, manner=Manner(told=say))
