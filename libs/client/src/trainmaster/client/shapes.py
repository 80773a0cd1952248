"""What the server answers, field by field, as plain dictionaries."""

from typing import Any, NotRequired, TypedDict


class Receipt(TypedDict):
    """A job that is on the log, at `seq`."""

    job: str
    team: str
    name: str
    seq: int


class Change(TypedDict):
    """What became of a request about a job; `seq` is 0 when it was so already."""

    job: str
    team: str
    changed: bool
    seq: int
    message: str


class NodeChange(TypedDict):
    """What became of a request about a node; `seq` is 0 when it was so already."""

    node: str
    pool: str
    changed: bool
    seq: int
    message: str


class JobRow(TypedDict):
    """One job in a list."""

    id: str
    team: str
    name: str
    state: str
    attempt: NotRequired[int]
    priority: NotRequired[int]
    nodes: NotRequired[Any]
    step: NotRequired[int | None]
    loss: NotRequired[float | None]
    reason: NotRequired[str]
    cause: NotRequired[str]
    submitted_at: NotRequired[str]
    since: NotRequired[str]


JobDetails = dict[str, Any]
"""A row's fields and all else that is known of one job."""


class JobEvent(TypedDict):
    """One event of a job's life, with a sentence about it."""

    seq: int
    time: str
    type: str
    attempt: NotRequired[int]
    summary: NotRequired[str]
    event: NotRequired[dict[str, Any]]


class LogChunk(TypedDict):
    """A piece of one rank's output, from a byte of its file; not always a whole line.

    With `skipped_bytes` the text says that so many are missing here.
    """

    rank: int
    attempt: int
    offset: int
    text: str
    skipped_bytes: NotRequired[int]


class NodeRow(TypedDict):
    """One node of a pool."""

    pool: str
    node: str
    state: str
    address: NotRequired[str]
    accelerators: NotRequired[int]
    accelerators_used: NotRequired[int]
    cpus: NotRequired[int]
    jobs: NotRequired[list[str]]
    blocked_by: NotRequired[list[str]]


class OfficeChange(TypedDict):
    """What became of a request about a team, a pool or a token."""

    name: str
    changed: bool
    seq: int
    message: str


class TeamRow(TypedDict):
    """One team."""

    team: str
    parent: str
    paused: bool
    until: str | None
    quotas: dict[str, dict[str, int]]
    by: str
    created_at: str


class PoolRow(TypedDict):
    """One pool."""

    pool: str
    backend: str
    port_first: int
    port_last: int
    by: str
    created_at: str


class TokenRow(TypedDict):
    """One token, without its secret, which nobody keeps."""

    id: str
    name: str
    team: str
    role: str
    state: str
    issued_at: str
    expires_at: str | None
    revoked_at: str | None
    by: str


class GivenToken(TypedDict):
    """A token that was just given out; `token` is its secret."""

    id: str
    name: str
    team: str
    role: str
    expires_at: str
    token: str
    seq: int


class RefusalRow(TypedDict):
    """A request that was not let through."""

    time: str
    team: str
    by: str
    origin: str
    action: str
    request: str
    status: int
    reason: str
    suppressed: int


class ParkedRow(TypedDict):
    """A message of another system that nobody could work off."""

    number: int
    at: str
    stream: str
    seq: int
    subject: str
    reason: str
    bytes: int


class ParkedMessage(ParkedRow):
    """The same, whole."""

    headers: dict[str, str]
    text: str
    body_base64: str
