"""An identity provider on loopback: real HTTP, real keys, and it can turn them."""

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from typing_extensions import override

from trainmaster.runtime.settings import OidcRule, OidcSettings

AUDIENCE = "trainmaster"
_RSA_BITS = 2048


@cache
def _a_key(name: str, algorithm: str) -> tuple[Any, dict[str, Any]]:
    """Make a key, once for all tests: a large prime takes its time."""
    del name
    if algorithm.startswith("ES"):
        curve = ec.generate_private_key(ec.SECP256R1())
        return curve, json.loads(ECAlgorithm.to_jwk(curve.public_key()))
    large = rsa.generate_private_key(65537, _RSA_BITS)
    return large, json.loads(RSAAlgorithm.to_jwk(large.public_key()))


class Issuer:
    """Signs whatever it is told to; `asked` are the documents that were read."""

    def __init__(self, url: str) -> None:
        self.url = self.calls_itself = self.keys_at = ""
        self.move_to(url)
        self.asked: list[str] = []
        self.away = False
        self._private: dict[str, tuple[str, Any]] = {}
        self._public: list[dict[str, Any]] = []

    def move_to(self, url: str) -> None:
        """Say where this one is."""
        self.url = self.calls_itself = url
        self.keys_at = f"{url}/keys"

    def add_key(self, name: str, algorithm: str = "RS256") -> None:
        """Sign with a new key from now on."""
        private, told = _a_key(name, algorithm)
        self._private[name] = algorithm, private
        self._public.append({**told, "kid": name, "alg": algorithm, "use": "sig"})

    def show(self, key: dict[str, Any]) -> None:
        """Show a key that is not ours to sign with."""
        self._public.append(key)

    def drop_key(self, name: str) -> None:
        """Show a key no more."""
        self._public = [key for key in self._public if key["kid"] != name]

    def public_key(self, name: str) -> Any:
        return self._private[name][1].public_key()

    def token(self, name: str = "k1", **claims: Any) -> str:
        """Sign claims; what is told wins, None leaves a claim out."""
        algorithm, private = self._private[name]
        return jwt.encode(
            self.claims(**claims), private, algorithm, headers={"kid": name}
        )

    def claims(self, **told: Any) -> dict[str, Any]:
        now = datetime.now(UTC)  # noqa: TID251 - a provider has a clock of its own
        claims = {
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": "u-17",
            "email": "ada@example.com",
            "groups": ["staff", "ml-vision"],
            "iat": now,
            "exp": now + timedelta(minutes=5),
            **told,
        }
        return {name: value for name, value in claims.items() if value is not None}

    def settings(self, **told: Any) -> OidcSettings:
        rules = (
            OidcRule(value="ml-vision", team="vision", role="submitter"),  # pyright: ignore[reportArgumentType] read like JSON
        )
        known: dict[str, Any] = {
            "issuer": self.url,
            "audience": AUDIENCE,
            "grants": rules,
            "leeway_seconds": 5.0,
        }
        return OidcSettings.model_validate(known | told)

    def document(self, path: str) -> Any:
        self.asked.append(path)
        if self.away:
            return None
        return {
            "/.well-known/openid-configuration": {
                "issuer": self.calls_itself,
                "jwks_uri": self.keys_at,
            },
            "/keys": {"keys": self._public},
        }.get(path)


class _Handler(BaseHTTPRequestHandler):
    issuer: Issuer = Issuer("")

    def do_GET(self) -> None:
        told = self.issuer.document(self.path)
        body = json.dumps(told).encode()
        self.send_response(404 if told is None else 200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    @override
    def log_message(self, format: str, *args: Any) -> None:
        del format, args


@contextmanager
def issuing() -> Generator[Issuer]:
    issuer = Issuer("")
    handler = type("Handler", (_Handler,), {"issuer": issuer})
    http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    issuer.move_to(f"http://127.0.0.1:{http.server_port}")
    issuer.add_key("k1")
    thread = threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield issuer
    finally:
        http.shutdown()
        http.server_close()
        thread.join()
