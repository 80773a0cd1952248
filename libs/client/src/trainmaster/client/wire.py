"""Owns the wire to one server: a question, its answer, a stream that goes on.

Everything that can go wrong on the way becomes one of our errors here.
"""

import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, Final, cast
from urllib.parse import urlsplit

import httpx

from trainmaster.client.credentials import Credentials
from trainmaster.client.errors import NotReadyError, error_of
from trainmaster.client.sse import ServerSentEvent, parse
from trainmaster.core.errors import UnreachableError

AGAIN_SECONDS: Final = (0.2, 0.5, 1.0)
"""How long to wait before each new try."""
_SECONDS: Final = 15.0
_SILENCE_SECONDS: Final = 60.0
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})


class Wire:
    """HTTP to one server with one token; safe to share between threads."""

    def __init__(
        self, credentials: Credentials, *, transport: httpx.BaseTransport | None
    ) -> None:
        parts = urlsplit(credentials.url)
        self.url = credentials.url
        self.server_time: datetime | None = None
        self._closed = False
        self._http = httpx.Client(
            base_url=credentials.url,
            headers={"Authorization": f"Bearer {credentials.token}"},
            timeout=_SECONDS,
            transport=transport,
            # A proxy cannot reach our loopback, and plain HTTP needs no certificates.
            trust_env=parts.hostname not in _LOOPBACK,
            verify=parts.scheme == "https",
        )

    def close(self) -> None:
        """Hang up; a thread that still asks gets UnreachableError."""
        self._closed = True
        self._http.close()

    def ask(self, method: str, path: str, **how: Any) -> httpx.Response:
        """Ask and return the answer. Raises what `errors` lists."""
        answer = self.send(method, path, **how)
        self._check(answer)
        return answer

    def send(self, method: str, path: str, **how: Any) -> httpx.Response:
        """Ask and return the answer whatever it is. Raises UnreachableError."""
        with self._speaking():
            answer = self._http.request(method, path, **how)
        told = answer.headers.get("date")
        if told:
            self.server_time = parsedate_to_datetime(told)
        return answer

    def follow(self, path: str, params: dict[str, str]) -> Iterator[ServerSentEvent]:
        """Read a stream to its end, across lost connections.

        After one it begins anew: the caller moves `params` on with what was read, or
        passes over what comes again.
        """
        failures = 0
        while True:
            try:
                for told in self._stream(path, params):
                    failures = 0
                    yield told
            except (UnreachableError, NotReadyError):
                if self._closed or failures >= len(AGAIN_SECONDS):
                    raise
                time.sleep(AGAIN_SECONDS[failures])
                failures += 1
            else:
                return

    def _stream(
        self, path: str, params: Mapping[str, str]
    ) -> Iterator[ServerSentEvent]:
        headers = {"Accept": "text/event-stream"}
        timeout = httpx.Timeout(_SECONDS, read=_SILENCE_SECONDS)
        with (
            self._speaking(),
            self._http.stream(
                "GET", path, params=params, headers=headers, timeout=timeout
            ) as answer,
        ):
            if answer.is_error:
                answer.read()
            self._check(answer)
            yield from parse(answer.iter_lines())

    @contextmanager
    def _speaking(self) -> Generator[None]:
        """Tell every way in which a server is not heard alike."""
        try:
            yield
        except httpx.TransportError as error:
            raise self._unreachable() from error
        except RuntimeError as error:
            if not self._closed:
                raise
            raise self._unreachable() from error

    def _check(self, answer: httpx.Response) -> None:
        if not answer.is_success:
            raise error_of(answer.status_code, self._problem(answer))

    def _problem(self, answer: httpx.Response) -> Mapping[str, Any]:
        try:
            told = answer.json()
        except ValueError:
            told = None
        if isinstance(told, dict) and told.keys() & {"detail", "title"}:
            return cast("dict[str, Any]", told)
        phrase = HTTPStatus(answer.status_code).phrase
        detail = (
            f"{self.url} answered {answer.status_code} {phrase}; is it trainmaster?"
        )
        return {"detail": detail}

    def _unreachable(self) -> UnreachableError:
        return UnreachableError(
            what="trainmaster", address=self.url, hint="start it with `tm up`"
        )
