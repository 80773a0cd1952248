"""Decides whether an identity provider vouches for somebody, and which roles follow.

The provider's keys are read from its discovery document and kept; an unknown key is
looked up at once, but seldom, so that strangers cannot make us ask all the time. Only
signatures with a key pair are taken: `none` and shared secrets never.
"""

import asyncio
import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
import jwt

from trainmaster.core.errors import UnreachableError
from trainmaster.core.rights import Grant
from trainmaster.runtime.auth_identity import Identity, IdentityRefusedError
from trainmaster.runtime.settings import OidcRule, OidcSettings

_DISCOVERY: Final = "/.well-known/openid-configuration"
_REQUIRED: Final = ["exp", "iss", "aud", "sub"]
_FETCH_SECONDS: Final = 5.0
_KEYS_BYTES_MAX: Final = 512 * 1024
_ASK_AGAIN_SECONDS: Final = 10.0
_KEPT_MAX: Final = 1000
_KEPT_SECONDS: Final = 60.0
_SUBJECT_CHARACTERS_MAX: Final = 200
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
_BROKEN: Final = (ValueError, TypeError, KeyError, AttributeError, jwt.PyJWTError)


class Oidc:
    """Reads identity tokens of one provider."""

    def __init__(
        self,
        settings: OidcSettings,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
        ask_again_seconds: float = _ASK_AGAIN_SECONDS,
    ) -> None:
        self._settings = settings
        self._keys = _Keys(settings, transport, ask_again_seconds)
        self._known: dict[bytes, tuple[Identity, float]] = {}

    async def identify(self, token: str) -> Identity:
        """Read a token. Raises IdentityRefusedError and UnreachableError."""
        digest, now = hashlib.sha256(token.encode()).digest(), time.monotonic()
        found, until = self._known.get(digest, (None, 0.0))
        if found is not None and now < until:
            return found
        identity = await self._verified(token)
        while len(self._known) >= _KEPT_MAX:
            del self._known[next(iter(self._known))]
        self._known[digest] = identity, now + _KEPT_SECONDS
        return identity

    async def _verified(self, token: str) -> Identity:
        settings = self._settings
        try:
            header = jwt.get_unverified_header(token)
        except jwt.PyJWTError as error:
            raise _refused("cannot be read") from error
        if header.get("alg") not in settings.algorithms:
            allowed = ", ".join(settings.algorithms)
            raise _refused(f"is signed with {header.get('alg')}, not with {allowed}")
        key = await self._keys.find(str(header.get("kid", "")))
        try:
            claims = jwt.decode(
                token,
                key,
                algorithms=[*settings.algorithms],
                audience=settings.audience,
                issuer=settings.issuer,
                leeway=settings.leeway_seconds,
                options={"require": _REQUIRED},
            )
        except jwt.ExpiredSignatureError as error:
            raise _refused("has expired", hint="log in again") from error
        except jwt.PyJWTError as error:
            raise _refused(f"is not accepted: {error}") from error
        return _identity(claims, settings)


class _Keys:
    """The provider's public keys by name, read when they are needed."""

    def __init__(
        self,
        settings: OidcSettings,
        transport: httpx.AsyncBaseTransport | None,
        ask_again_seconds: float,
    ) -> None:
        self._settings = settings
        self._transport = transport
        self._ask_again_seconds = ask_again_seconds
        self._by_name: dict[str, jwt.PyJWK] = {}
        self._read_at = self._asked_at = -float("inf")
        self._reading = asyncio.Lock()
        self._trouble = ""

    async def find(self, name: str) -> jwt.PyJWK:
        """Find a key. When the provider is away, old keys are better than none."""
        if self._stale() or name not in self._by_name:
            async with self._reading:
                await self._read(name)
        if not self._by_name:
            raise UnreachableError(
                what="the identity provider",
                address=self._settings.issuer,
                hint=f"its keys cannot be read ({self._trouble}); check TM_OIDC",
            )
        if name in self._by_name:
            return self._by_name[name]
        if not name and len(self._by_name) == 1:
            return next(iter(self._by_name.values()))
        raise _refused(f"is signed with an unknown key {name!r}", hint="log in again")

    def _stale(self) -> bool:
        return time.monotonic() > self._read_at + self._settings.keys_seconds

    async def _read(self, name: str) -> None:
        if not self._stale() and name in self._by_name:
            return  # whoever held the lock before has read it
        if time.monotonic() < self._asked_at + self._ask_again_seconds:
            return
        self._asked_at = time.monotonic()
        try:
            self._by_name = await self._fetch()
            self._read_at = time.monotonic()
        except (httpx.HTTPError, httpx.InvalidURL, *_BROKEN) as error:
            self._trouble = str(error) or type(error).__name__

    async def _fetch(self) -> dict[str, jwt.PyJWK]:
        issuer = self._settings.issuer
        async with httpx.AsyncClient(
            timeout=_FETCH_SECONDS, transport=self._transport
        ) as http:
            found = await _document(http, issuer.rstrip("/") + _DISCOVERY)
            if found["issuer"] != issuer:
                message = f"it calls itself {found['issuer']!r}"
                raise ValueError(message)
            keys = await _document(http, found["jwks_uri"])
        usable = (_key(each, self._settings.algorithms) for each in keys["keys"])
        return {key.key_id or "": key for key in usable if key is not None}


async def _document(http: httpx.AsyncClient, address: str) -> Any:
    """Get a small JSON document. Raises httpx.HTTPError and ValueError."""
    parts = urlsplit(address)
    if parts.scheme != "https" and parts.hostname not in _LOOPBACK:
        message = f"{address} is not https"
        raise ValueError(message)
    body = bytearray()
    async with http.stream("GET", address) as answer:
        answer.raise_for_status()
        async for chunk in answer.aiter_bytes():
            body += chunk
            if len(body) > _KEYS_BYTES_MAX:
                message = f"{address} answers more than {_KEYS_BYTES_MAX:,} bytes"
                raise ValueError(message)
    return json.loads(bytes(body))


def _key(told: Any, algorithms: Sequence[str]) -> jwt.PyJWK | None:
    """Take one key, None when it is of a kind that is not used here."""
    try:
        key = jwt.PyJWK(told)
    except _BROKEN:
        return None
    signs = told.get("use", "sig") == "sig"
    return key if signs and key.algorithm_name in algorithms else None


def _refused(problem: str, *, hint: str = "") -> IdentityRefusedError:
    return IdentityRefusedError(
        problem=problem, hint=hint or "ask whoever runs the identity provider"
    )


def _identity(claims: Mapping[str, Any], settings: OidcSettings) -> Identity:
    told = claims.get(settings.subject_claim)
    name = str(told or claims["sub"])
    if not name.isprintable() or len(name) > _SUBJECT_CHARACTERS_MAX:
        raise _refused(f"has a `{settings.subject_claim}` that is no usable name")
    return Identity(
        subject=f"oidc:{name}",
        grants=grants_of(claims, settings.grants),
        expires_at=datetime.fromtimestamp(float(claims["exp"]), UTC)
        + timedelta(seconds=settings.leeway_seconds),
    )


def grants_of(
    claims: Mapping[str, Any], rules: Sequence[OidcRule]
) -> tuple[Grant, ...]:
    """Say which roles follow from what the provider tells of somebody."""
    granted = (
        Grant(team=rule.team, role=rule.role)
        for rule in rules
        if rule.value in _values(claims, rule.claim)
    )
    return tuple(dict.fromkeys(granted))


def _values(claims: Mapping[str, Any], path: str) -> Iterator[str]:
    """List what stands in a claim; a dot leads into one that holds others."""
    value: Any = claims.get(path)
    if value is None:
        value = claims
        for part in path.split("."):
            value = as_fields(value).get(part)
    kind: type[Any] = value.__class__
    yield from map(str, value if issubclass(kind, list) else [value])


def as_fields(value: Any) -> Mapping[str, Any]:
    """Take a claim as others inside it; what is none has none."""
    kind: type[Any] = value.__class__
    return value if issubclass(kind, dict) else {}
