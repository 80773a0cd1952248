"""Who may publish and subscribe what, derived from the events' publishers. Pure.

Nothing here is written by hand per event: a service may say the event types whose
`publisher` it is, and an agent may speak only about its own node.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from trainmaster.core import facts, ingress_subjects, notes, subjects
from trainmaster.core.events import REGISTRY, Archived
from trainmaster.core.ids import NodeKey
from trainmaster.core.model import Message

_KEY_TOKENS = {
    "job": 2,
    "note": 2,
    "plan": 1,
    "node": 2,
    "team": 1,
    "pool": 1,
    "token": 1,
    "audit": 1,
}
_ARCHIVED = (subjects.JOBS, subjects.MEMBERS)
_REGISTERED = (facts, notes)  # importing them fills the registry


class ServiceGrant(Message):
    """One service's row in deploy/services.yaml."""

    reads: tuple[str, ...] = ()
    keeps: Mapping[str, tuple[str, ...]] = {}
    takes: Mapping[str, tuple[str, ...]] = {}
    says: tuple[str, ...] = ()
    listens: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    """Subjects one NATS user may publish and subscribe."""

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]
    answers: bool = False


def service_permissions(name: str, grant: ServiceGrant) -> Permissions:
    """Derive what one service may do."""
    publish = [*said_by(name), f"tm.status.service.{name}", *grant.says]
    for stream in grant.reads:
        publish += [*_asking(stream), *_consuming(stream, name)]
    for stream, patterns in grant.keeps.items():
        publish += [*patterns, f"$JS.API.STREAM.PURGE.{stream}", *_asking(stream)]
    for stream, patterns in grant.takes.items():
        publish += [*_taking(stream, name), *patterns]
    publish += [f"tm.ask.*.*.{question}" for question in grant.asks]
    if Archived.publisher == name:  # who says that a job is in the archive may purge it
        publish += [f"$JS.API.STREAM.PURGE.{stream}" for stream in _ARCHIVED]
    return Permissions(
        publish=tuple(dict.fromkeys(publish)),
        subscribe=(f"_INBOX_{name}.>", *grant.listens),
    )


def agent_permissions(node: NodeKey) -> Permissions:
    """Derive what the agent of one node may do."""
    name, mine = agent_name(node), f"{node.pool}.{node.node}"
    consumer = f"{subjects.ASSIGN}.{name}"
    return Permissions(
        publish=(
            f"tm.member.{mine}.>",
            subjects.heartbeat(node),
            "tm.out.>",
            "tm.metric.>",
            f"$JS.API.CONSUMER.CREATE.{consumer}.{subjects.assignments(node)}",
            f"$JS.API.CONSUMER.DELETE.{consumer}",
            f"$JS.API.CONSUMER.MSG.NEXT.{consumer}",
            f"$JS.API.STREAM.INFO.{subjects.ASSIGN}",
        ),
        subscribe=(f"_INBOX_{name}.>", f"tm.ask.{mine}.>"),
        answers=True,
    )


def source_permissions(source: str) -> Permissions:
    """Derive what another system may do: say its own things, read its own answers."""
    return Permissions(
        publish=(
            ingress_subjects.said(source, ">"),
            f"$JS.API.DIRECT.GET.{subjects.REPLIES}.{_answers(source)}",
        ),
        subscribe=(f"_INBOX_{source_name(source)}.>", _answers(source)),
    )


def source_name(source: str) -> str:
    """Name another system's NATS user."""
    return f"source-{source}"


def _answers(source: str) -> str:
    return ingress_subjects.reply(source, ">")


def agent_name(node: NodeKey) -> str:
    """Name an agent's NATS user and consumer."""
    return f"agent-{node.pool}-{node.node}"


def said_by(publisher: str) -> tuple[str, ...]:
    """List the subjects on which a publisher says its event types."""
    stems = (
        f"tm.{family}{'.*' * _KEY_TOKENS[family]}{'.' + kind if kind else ''}"
        for (family, kind), event in REGISTRY.items()
        if event.publisher == publisher and family in _KEY_TOKENS
    )
    return tuple(sorted(stems))


def _asking(stream: str) -> tuple[str, ...]:
    return (
        f"$JS.API.STREAM.INFO.{stream}",
        f"$JS.API.DIRECT.GET.{stream}",
        f"$JS.API.DIRECT.GET.{stream}.>",
    )


def _consuming(stream: str, name: str) -> tuple[str, ...]:
    return (
        f"$JS.API.CONSUMER.CREATE.{stream}.{name}",
        f"$JS.API.CONSUMER.CREATE.{stream}.{name}.>",
        f"$JS.API.CONSUMER.DELETE.{stream}.{name}",
        f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{name}",
    )


def _taking(stream: str, name: str) -> tuple[str, ...]:
    """Work off a stream with a durable consumer, and park what cannot be."""
    return (
        f"$JS.API.CONSUMER.INFO.{stream}.{name}",
        f"$JS.API.CONSUMER.CREATE.{stream}.{name}.>",
        f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{name}",
        f"$JS.ACK.{stream}.{name}.>",
        ingress_subjects.parked(stream),
        *_asking(subjects.PARKED),
        f"$JS.API.STREAM.MSG.DELETE.{subjects.PARKED}",
    )
