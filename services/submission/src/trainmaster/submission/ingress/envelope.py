"""Decides what a message from another system says, or why nobody can read it. Pure.

A CloudEvent in binary mode (attributes in `ce-` headers, the body is the data) or in
structured mode (all of it is one JSON document). What cannot be read is parked; what
can be read but says something wrong is refused, with the field.
"""

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import from_json, to_json

from trainmaster.core.envelope import ce_type
from trainmaster.core.errors import Fault
from trainmaster.core.ingress import KINDS, Said
from trainmaster.core.ingress_subjects import parse_said
from trainmaster.core.model import Json
from trainmaster.submission.ingress.settings import (
    BODY_BYTES_MAX,
    ID_CHARACTERS_MAX,
    SOURCE_CHARACTERS_MAX,
)

_STRUCTURED: Final = "application/cloudevents"
_JSON: Final = "application/json"
_PREFIX: Final = "ce-"
_VERSION: Final = "1.0"
_REQUIRED: Final = ("specversion", "id", "source", "type")


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message as it came."""

    subject: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class From:
    """Who said what under which id; what is not known is "".

    `source` is the user the server let in, `origin` what the source calls itself.
    """

    source: str = ""
    kind: str = ""
    id: str = ""
    origin: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A message that was understood; `digest` tells it from another of the same id."""

    sender: From
    digest: str
    said: Said


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """A message that was read and says something that cannot be."""

    sender: From
    digest: str
    faults: tuple[Fault, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A message nobody can read."""

    sender: From
    reason: str


class _UnreadableError(ValueError):
    """Says why; caught in `understood`."""


def understood(message: Message) -> Arrival | Wrong | Unreadable:
    """Read one message; never raises."""
    heard = parse_said(message.subject)
    if heard is None:
        reason = f"subject {message.subject!r} is not of the form tm.in.SOURCE.KIND"
        return Unreadable(sender=From(), reason=reason)
    sender = From(source=heard.source, kind=heard.kind)
    try:
        attributes, data = _opened(message)
        sender = _sender(sender, attributes)
        return _meant(sender, attributes, data)
    except _UnreadableError as error:
        return Unreadable(sender=sender, reason=str(error))


def _opened(message: Message) -> tuple[dict[str, Any], bytes]:
    """Take the attributes and the data out of either mode."""
    size = len(message.body)
    if size > BODY_BYTES_MAX:
        text = f"the body has {size:,} bytes; at most {BODY_BYTES_MAX:,} are read"
        raise _UnreadableError(text)
    headers = {name.lower(): value for name, value in message.headers.items()}
    kind = headers.get("content-type", "").strip().lower()
    if kind.startswith(_STRUCTURED):
        return _structured(message.body)
    attributes: dict[str, Any] = {
        name.removeprefix(_PREFIX): value
        for name, value in headers.items()
        if name.startswith(_PREFIX)
    }
    return attributes | ({"datacontenttype": kind} if kind else {}), message.body


def _structured(body: bytes) -> tuple[dict[str, Any], bytes]:
    attributes: dict[str, Any] = {**_object(body)}
    data = attributes.pop("data", None)
    encoded = attributes.pop("data_base64", None)
    if encoded is None:
        return attributes, b"" if data is None else to_json(data)
    try:
        return attributes, base64.b64decode(str(encoded), validate=True)
    except (binascii.Error, ValueError) as error:
        text = f"`data_base64` is not base64: {error}"
        raise _UnreadableError(text) from error


def _object(body: bytes) -> dict[str, Json]:
    """Read a JSON object as its standard has it: UTF-8, and no NaN."""
    try:
        found: Json = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        hint = ""
        if b"NaN" in body or b"Infinity" in body:
            hint = '; a number that is none is the string "NaN"'
        raise _UnreadableError(f"the body is not JSON: {error}{hint}") from error
    if not isinstance(found, dict):
        raise _UnreadableError("the body is a JSON value, but no object")
    return found


def _sender(sender: From, attributes: Mapping[str, Any]) -> From:
    """Take what tells who said it, as far as it is there and usable."""
    id_, origin = attributes.get("id"), attributes.get("source")
    known = isinstance(id_, str) and id_.isprintable() and len(id_) <= ID_CHARACTERS_MAX
    shown = origin if isinstance(origin, str) and origin.isprintable() else ""
    return From(
        source=sender.source,
        kind=sender.kind,
        id=str(id_) if known else "",
        origin=shown[:SOURCE_CHARACTERS_MAX],
    )


def _meant(sender: From, attributes: Mapping[str, Any], data: bytes) -> Arrival | Wrong:
    _check_attributes(sender, attributes)
    model = KINDS[sender.kind]
    document = _object(data or b"{}")
    digest = _digest(sender.kind, document)
    try:
        said = model.from_json(to_json(document))
    except ValidationError as error:
        return Wrong(sender=sender, digest=digest, faults=_faults(error))
    return Arrival(sender=sender, digest=digest, said=said)


def _check_attributes(sender: From, attributes: Mapping[str, Any]) -> None:
    if sender.kind not in KINDS:
        known = ", ".join(KINDS)
        raise _UnreadableError(f"kind {sender.kind!r} is not known (known: {known})")
    missing = [name for name in _REQUIRED if not attributes.get(name)]
    if missing:
        names = ", ".join(f"`{_PREFIX}{name}`" for name in missing)
        raise _UnreadableError(f"CloudEvents attributes are missing: {names}")
    if attributes["specversion"] != _VERSION:
        raise _UnreadableError(
            f"`ce-specversion` is {attributes['specversion']!r}, {_VERSION} is read"
        )
    if not sender.id:
        most = f"1 to {ID_CHARACTERS_MAX} printable characters"
        raise _UnreadableError(f"`ce-id` cannot be used: send {most}")
    expected = ce_type(KINDS[sender.kind])
    if attributes["type"] != expected:
        raise _UnreadableError(
            f"`ce-type` is {attributes['type']!r}; on this subject it is {expected!r}"
        )
    kind = str(attributes.get("datacontenttype", _JSON)).partition(";")[0].strip()
    if kind.lower() != _JSON:
        raise _UnreadableError(f"content type {kind!r} is not read; send {_JSON}")


def _digest(kind: str, document: object) -> str:
    text = json.dumps([kind, document], sort_keys=True)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def _faults(error: ValidationError) -> tuple[Fault, ...]:
    return tuple(
        Fault(field=".".join(map(str, each["loc"])), message=each["msg"])
        for each in error.errors(include_url=False, include_input=False)
    )
