"""Decides what nats-server is told: pure, from values to the text of its file.

Two of its habits would be holes and are closed here: an *empty* list of allowed
subjects allows everything, and no users at all lets anyone in.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from trainmaster.runtime.embedded.ports import LOOPBACK

MAX_PAYLOAD_BYTES: Final = 2 * 2**20
LOG_BYTES_MAX: Final = 8 * 2**20
LOG_FILES_MAX: Final = 3
AUTHORIZATION_SECONDS: Final = 5
"""The default of 2 s refuses good clients while every service starts at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NatsUser:
    """Who may connect, and what that user may say and hear; nothing by default."""

    name: str
    password: str
    publish: tuple[str, ...] = ()
    subscribe: tuple[str, ...] = ()
    allow_responses: bool = False
    """May answer a request once, whatever inbox the request names."""


def nats_configuration(
    *, port: int, monitor_port: int | None, store: Path, users: Sequence[NatsUser]
) -> str:
    """Write the configuration of a server that acknowledges only what is on disk."""
    if not users:
        message = "a server without users would let anyone in; give at least one"
        raise ValueError(message)
    monitor = [] if monitor_port is None else [f'http: "{LOOPBACK}:{monitor_port}"']
    lines = [
        f"server_name: {quoted(server_name(store))}",
        f'listen: "{LOOPBACK}:{port}"',
        *monitor,
        f"max_payload: {MAX_PAYLOAD_BYTES}",
        f"log_file: {quoted(str(store.with_name('log')))}",
        f"logfile_size_limit: {LOG_BYTES_MAX}",
        f"logfile_max_num: {LOG_FILES_MAX}",
        "jetstream {",
        f"  store_dir: {quoted(str(store))}",
        "  sync_interval: always",
        "}",
        "authorization {",
        f"  timeout: {AUTHORIZATION_SECONDS}",
        "  users: [",
        *(_user(user) for user in users),
        "  ]",
        "}",
    ]
    return "\n".join(lines) + "\n"


def server_name(store: Path) -> str:
    """Name the server after its store, so that a client can tell it from another."""
    return f"trainmaster-{hashlib.sha256(str(store).encode()).hexdigest()[:12]}"


def quoted(text: str) -> str:
    """Quote a string as nats-server reads it; only two characters need it."""
    if not text.isprintable():
        message = f"{text!r} cannot be written into the configuration of nats-server"
        raise ValueError(message)
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _user(user: NatsUser) -> str:
    responses = ", allow_responses: true" if user.allow_responses else ""
    return (
        f"    {{user: {quoted(user.name)}, password: {quoted(user.password)}, "
        f"permissions: {{publish: {_allowed(user.publish)}, "
        f"subscribe: {_allowed(user.subscribe)}{responses}}}}}"
    )


def _allowed(subjects: tuple[str, ...]) -> str:
    if not subjects:
        return '{deny: [">"]}'
    return f"{{allow: [{', '.join(quoted(subject) for subject in subjects)}]}}"
