"""The contract as an AsyncAPI 3.0 document: channels, who says what, where it is kept.

It is made from the same words as the code. What other systems say comes first, then
what they are answered, then every event of the log.
"""

from typing import Any, Final

from tools.contract.models import pretty
from tools.contract.tables import meaning, places
from trainmaster.core import ingress_subjects, subjects
from trainmaster.core.envelope import PACKAGE, ce_type
from trainmaster.core.ingress import KINDS, MessageParked, RequestAnswered
from trainmaster.core.model import Message

_PARAMETERS: Final = {
    "source": "the name in `tm sources add NAME`; its NATS user is `source-NAME`",
    "token": "the `ce-id`, or what stands for it: see RequestAnswered",
    "stream": "the stream the message was on",
    "team": "a team",
    "job": "a job's id",
    "pool": "a pool",
    "node": "a node's token within its pool",
    "attempt": "the number of an attempt",
    "rank": "the number of a rank",
}
_REQUIRED: Final = ("ce-specversion", "ce-id", "ce-source", "ce-type")


def rendered() -> str:
    """Render the whole document."""
    said = {kind: _said(kind, model) for kind, model in KINDS.items()}
    told = {
        "answers": _channel(
            ingress_subjects.reply("{source}", "{token}"),
            RequestAnswered,
            stream=subjects.REPLIES,
        ),
        "parked": _channel(
            ingress_subjects.parked("{stream}"), MessageParked, stream=subjects.PARKED
        ),
    }
    events = {
        name: _channel(subject, model, stream=stream)
        for name, model, subject, stream in places()
    }
    channels = {**said, **told, **events}
    messages = {
        model.__name__: _message(model)
        for model in (
            *KINDS.values(),
            RequestAnswered,
            MessageParked,
            *(model for _, model, _, _ in places()),
        )
    }
    return pretty(
        {
            "asyncapi": "3.0.0",
            "info": _INFO,
            "defaultContentType": "application/json",
            "servers": _SERVERS,
            "channels": channels,
            "operations": {
                **{f"hear_{kind}": _operation("receive", kind) for kind in said},
                **{f"say_{name}": _operation("send", name) for name in told | events},
            },
            "components": {"messages": messages, "securitySchemes": _SECURITY},
        }
    )


_INFO: Final = {
    "title": "Trainmaster",
    "version": "1",
    "description": "What Trainmaster hears and says on its bus, NATS. `receive`: what "
    "other systems publish to it, see docs/publishers.md. `send`: what it says itself. "
    f"Every message is a CloudEvent of the package {PACKAGE}, in binary mode; "
    "what other systems say may be in structured mode, application/cloudevents+json.",
}
_SERVERS: Final = {
    "bus": {
        "host": "{host}",
        "pathname": "",
        "protocol": "nats",
        "description": "The url in the credentials file of a source",
        "variables": {"host": {"default": "127.0.0.1:4222"}},
        "security": [{"$ref": "#/components/securitySchemes/source"}],
    }
}
_SECURITY: Final = {
    "source": {
        "type": "userPassword",
        "description": "User and password of the credentials file. Inboxes begin with "
        "its `inbox_prefix`; others may not be heard.",
    }
}


def _said(kind: str, model: type[Message]) -> dict[str, Any]:
    subject = ingress_subjects.said("{source}", kind)
    return _channel(subject, model, stream=subjects.INGRESS)


def _channel(subject: str, model: type[Message], *, stream: str) -> dict[str, Any]:
    name = model.__name__
    used = [each for each in _PARAMETERS if f"{{{each}}}" in subject]
    return {
        "address": subject,
        "description": f"{meaning(model)} Kept on the stream {stream}.",
        "messages": {name: {"$ref": f"#/components/messages/{name}"}},
        "parameters": {each: {"description": _PARAMETERS[each]} for each in used},
    }


def _operation(action: str, channel: str) -> dict[str, Any]:
    return {"action": action, "channel": {"$ref": f"#/channels/{channel}"}}


def _message(model: type[Message]) -> dict[str, Any]:
    """Say how one message travels: its attributes, and the schema of its body."""
    headers = {name: {"type": "string"} for name in _REQUIRED}
    headers["ce-type"] |= {"const": ce_type(model)}
    headers["ce-specversion"] |= {"const": "1.0"}
    return {
        "name": ce_type(model),
        "summary": meaning(model),
        "contentType": "application/json",
        "headers": {
            "type": "object",
            "required": list(_REQUIRED),
            "properties": headers,
        },
        "payload": {"$ref": f"schemas/{model.__name__}.json"},
    }
