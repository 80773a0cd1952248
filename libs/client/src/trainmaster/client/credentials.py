"""Decides which server is meant and what opens it: told, in the environment, or kept.

`tm up` keeps `credentials.json` (0600) in its data directory while it runs: without
that file nothing runs there.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from trainmaster.core.errors import PermanentError, UnreachableError

_URL, _TOKEN, _DATA = "TM_URL", "TM_TOKEN", "TM_DATA_DIR"
_FILE: Final = "credentials.json"


class CredentialsError(PermanentError):
    """The kept credentials cannot be used."""

    def __init__(self, *, path: Path, problem: str) -> None:
        super().__init__(f"{path} {problem}; restart `tm up`, which writes it anew")


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """A server and the token that opens it."""

    url: str
    token: str


def data_directory(told: Path | None, environment: Mapping[str, str]) -> Path:
    """Name the data directory: as told, else TM_DATA_DIR, else ~/.trainmaster."""
    if told is not None:
        return told
    kept = environment.get(_DATA)
    return Path(kept) if kept else Path.home() / ".trainmaster"


def find_credentials(
    directory: Path | None = None, environment: Mapping[str, str] | None = None
) -> Credentials:
    """Find the server. Raises UnreachableError when none runs here.

    TM_URL and TM_TOKEN name another server and win over everything kept.
    """
    known = os.environ if environment is None else environment
    if known.get(_URL):
        return Credentials(url=known[_URL].rstrip("/"), token=known.get(_TOKEN, ""))
    path = data_directory(directory, known) / _FILE
    try:
        text = path.read_text()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UnreachableError(
            what="trainmaster",
            address=str(path.parent),
            hint="start it with `tm up`, or name another server in TM_URL and TM_TOKEN",
        ) from error
    except OSError as error:
        problem = f"cannot be read ({error.strerror})"
        raise CredentialsError(path=path, problem=problem) from error
    return _parsed(text, path)


def _parsed(text: str, path: Path) -> Credentials:
    try:
        kept = json.loads(text)
        return Credentials(url=str(kept["url"]).rstrip("/"), token=str(kept["token"]))
    except (ValueError, KeyError, TypeError) as error:
        raise CredentialsError(path=path, problem="is damaged") from error
