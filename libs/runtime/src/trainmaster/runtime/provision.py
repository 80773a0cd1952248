"""Declaring streams and database roles from the files in `deploy/`; nobody else does.

Run once by whoever starts the servers. Declaring again with the same file changes
nothing; a stream that has another configuration is updated and the change is logged.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import asyncpg
import yaml

from trainmaster.core.errors import NotFoundError, UnreachableError
from trainmaster.runtime.bus import Bus
from trainmaster.runtime.permissions import ServiceGrant

_FOLDER_VARIABLE: Final = "TM_DEPLOY_DIR"
_STREAMS_FILE: Final = Path("nats") / "streams.yaml"
_SIZES: Final = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_NANOSECONDS: Final = 1_000_000_000
_DATABASE: Final = "trainmaster"


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """A database role: a service and its password."""

    service: str
    password: str

    @property
    def name(self) -> str:
        """Name the role as PostgreSQL does."""
        return f"tm_{self.service.replace('-', '_')}"


def deploy_folder() -> Path:
    """Find the `deploy` folder: told by TM_DEPLOY_DIR, else that of the checkout."""
    told = os.environ.get(_FOLDER_VARIABLE)
    places = [Path(told)] if told else [p / "deploy" for p in Path(__file__).parents]
    for place in places:
        if (place / _STREAMS_FILE).is_file():
            return place
    raise NotFoundError(
        kind="file",
        name=str(_STREAMS_FILE),
        hint=f"set {_FOLDER_VARIABLE} to the folder that holds it",
    )


def read_grants(folder: Path) -> dict[str, ServiceGrant]:
    """Read deploy/services.yaml."""
    content = yaml.safe_load((folder / "services.yaml").read_text())
    return {
        name: ServiceGrant.model_validate(row or {})
        for name, row in content["services"].items()
    }


def read_streams(folder: Path) -> dict[str, dict[str, Any]]:
    """Read deploy/nats/streams.yaml into JetStream configurations."""
    content = yaml.safe_load((folder / _STREAMS_FILE).read_text())
    return {name: stream_config(name, row) for name, row in content["streams"].items()}


def stream_config(name: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """Translate one row into the server's terms; everything is said explicitly."""
    config: dict[str, Any] = {
        "name": name,
        "description": row["description"],
        "subjects": list(row["subjects"]),
        "retention": row.get("retention", "limits"),
        "storage": row.get("storage", "file"),
        "discard": row["discard"],
        "max_bytes": read_size(row["max_bytes"]),
        "max_age": int(row.get("max_age_seconds", 0) * _NANOSECONDS),
        "max_msgs": -1,
        "max_msgs_per_subject": row.get("max_messages_per_subject", -1),
        "max_consumers": -1,
        "num_replicas": row.get("replicas", 1),
        "duplicate_window": int(row["duplicate_window_seconds"] * _NANOSECONDS),
        "allow_direct": True,
        "allow_atomic": row.get("atomic", False),
    }
    if "max_message_bytes" in row:
        config["max_msg_size"] = read_size(row["max_message_bytes"])
    if "republish" in row:
        found = row["republish"]
        config["republish"] = {"src": found["source"], "dest": found["destination"]}
    return config


def read_size(text: str) -> int:
    """Read a size such as `8GiB` into bytes."""
    for unit, factor in _SIZES.items():
        if text.endswith(unit):
            return int(text.removesuffix(unit)) * factor
    return int(text)


async def declare_streams(bus: Bus, streams: Mapping[str, Mapping[str, Any]]) -> None:
    """Create or update every stream. Raises UnreachableError with the reason."""
    for name, config in streams.items():
        answer = await bus.ask_api(f"STREAM.CREATE.{name}", dict(config))
        if "error" in answer:
            answer = await bus.ask_api(f"STREAM.UPDATE.{name}", dict(config))
        if "error" in answer:
            raise UnreachableError(
                what=f"stream {name}",
                address=bus.address.url,
                hint=f"it cannot be declared: {answer['error']['description']}",
            )


async def declare_roles(superuser_dsn: str, roles: Mapping[str, Role]) -> None:
    """Create the database and a role per service that owns only its own schemas."""
    connection = await asyncpg.connect(superuser_dsn)
    try:
        if not await connection.fetchval(
            "select true from pg_database where datname = $1", _DATABASE
        ):
            await connection.execute(f"create database {_DATABASE}")
            await connection.execute(f"revoke all on database {_DATABASE} from public")
        known = {
            r["rolname"] for r in await connection.fetch("select rolname from pg_roles")
        }
        for role in roles.values():
            verb = "alter" if role.name in known else "create"
            literal = await connection.fetchval(
                "select quote_literal($1)", role.password
            )
            await connection.execute(
                f"{verb} role {role.name} login password {literal}"
            )
            await connection.execute(
                f"grant connect, create on database {_DATABASE} to {role.name}"
            )
    finally:
        await connection.close()
